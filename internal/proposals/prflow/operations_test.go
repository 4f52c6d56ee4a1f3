package prflow_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
)

func TestTheSchemasOfTheToolsAreThoseOfTheirTypes(t *testing.T) {
	t.Parallel()
	operationtest.Schemas(t, prflow.Toolset(nil))
}

func TestTheKnownValuesOfARequestAreThoseOfTheDomain(t *testing.T) {
	t.Parallel()
	enum := func(of any, field string) []string {
		f, _ := reflect.TypeOf(of).FieldByName(field)
		return strings.Split(f.Tag.Get("enum"), ",")
	}
	for _, name := range enum(prflow.CreateRequest{}, "ChangeType") {
		if !gitprovider.ChangeType(name).Valid() {
			t.Errorf("%s is no change type", name)
		}
	}
	if got := len(enum(prflow.CreateRequest{}, "ChangeType")); got != len(gitprovider.ChangeTypes()) {
		t.Errorf("%d change types may be asked for, there are %d", got, len(gitprovider.ChangeTypes()))
	}
	for _, name := range enum(prflow.FileRequest{}, "Action") {
		if !gitprovider.Action(name).Valid() {
			t.Errorf("%s is no action", name)
		}
	}
}
