package packages

import (
	"io/fs"
	"syscall"
	"testing"

	"github.com/claudeops/claudeops/internal/base/contract"
)

func TestANameThatIsTooLongIsNoFaultOfRights(t *testing.T) {
	for want, cause := range map[Code]error{InvalidArgument: syscall.ENAMETOOLONG, PermissionDenied: syscall.EACCES} {
		err := &fs.PathError{Op: "open", Path: "x", Err: cause}
		for _, got := range []error{unwritable("x", err), Registry{Name: "r"}.unwritable("x", err)} {
			if e := contract.Of[Code](got); e == nil || e.Code != want {
				t.Errorf("%v: %v", cause, got)
			}
		}
	}
}
