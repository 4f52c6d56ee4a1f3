package gitea_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

const labelsRoute = "POST " + repoPath + "/issues/1/labels"

func TestLabelGoesByIDWhereNamesAreNotTaken(t *testing.T) {
	t.Parallel()
	have := []object{{"id": 7, "name": gitprovider.LabelOurs}}
	for _, status := range []int{400, 422, 500} {
		s := serve(t, routes{
			labelsRoute:                   []reply{{status: status, body: object{"message": "cannot unmarshal"}}, {body: have}},
			"GET " + repoPath + "/labels": list(1, have...),
		})
		wantCode(t, s.provider(t).Label(t.Context(), ref(), 1, []string{gitprovider.LabelOurs}), "")
		requests := s.faults.Requests()
		if last := requests[len(requests)-1]; last.Method != http.MethodPost || !strings.Contains(string(last.Body), "[7]") {
			t.Errorf("%d: the last request is %s %s", status, last.Method, last.Body)
		}
	}
}

func TestLabelRefusals(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		script routes
		want   fault.Code
		says   string
	}{
		"a number that does not exist": {routes{labelsRoute: refused(404, "not found")}, fault.NotFound, "#1"},
		"a user who may not": {routes{labelsRoute: refused(403, "write permission is required")}, fault.ProviderDisabled,
			"access"},
		"a label that cannot be made": {routes{labelsRoute: reply{body: []object{}},
			"POST " + repoPath + "/labels": refused(403, "user should be an owner")}, fault.ProviderDisabled, "owner"},
		"a label that is made and not taken": {routes{labelsRoute: reply{body: []object{}},
			"POST " + repoPath + "/labels": reply{status: 201, body: object{"id": 9, "name": "x"}}}, fault.UpstreamError, "x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := serve(t, tc.script).provider(t).Label(t.Context(), ref(), 1, []string{"x"})
			wantCode(t, err, tc.want)
			wantSays(t, err, tc.says)
		})
	}
}
