package git

import "syscall"

// endWithParent has the kernel ask git to end when this process is killed, so that nothing it was at takes effect after
// somebody else has settled it. It is not for commands that write references; see Call.Finish. (prctl(2),
// PR_SET_PDEATHSIG: the signal comes when the thread that started git ends, so it is started by osthread.Lasting.)
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGTERM }
