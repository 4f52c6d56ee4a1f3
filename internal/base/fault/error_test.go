package fault

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
)

type red string
type blue string

func TestAnErrorHasTheCodesOfOneContract(t *testing.T) {
	err := fmt.Errorf("around it: %w", NewContractError[red]("RED_GONE", "%s is gone", "it").With("name",
		"it").Suggest("look",
		"ask").Because(io.EOF))
	e := ContractErrorOf[red](err)
	if e == nil || e.Error() != "[RED_GONE] it is gone" || e.Details["name"] != "it" ||
		!slices.Equal(e.Suggestions, []string{"look", "ask"}) {
		t.Errorf("got %+v", e)
	}
	if !errors.Is(err, io.EOF) {
		t.Error("the cause is not there for logs")
	}
	if ContractErrorOf[blue](err) != nil || ContractErrorOf[red](io.EOF) != nil || ContractErrorOf[red](nil) != nil {
		t.Error("an error of another contract, or of none, was taken for one of this")
	}
}
