//go:build unix

package facts_test

import (
	"syscall"
	"time"
)

// processorTime is what the process has taken of the processors, as other work on the machine does not count.
func processorTime() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
