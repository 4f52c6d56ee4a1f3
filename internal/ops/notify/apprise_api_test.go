package notify

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAppriseAPIGetsWhatItsEndpointTakes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, path, more string // more of the list
		target, urls     string
	}{
		{"a server with a key", "/notify/ops?tag=all", "", "apprise-api", ""},
		{"a server that knows its URLs", "/notify", "", "apprise-api", ""},
		{"a server that is given the URL", "/notify", " discord://id/" + sentinel,
			"apprise-discord", "discord://id/" + sentinel},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			url, requests := recorder(t, http.StatusOK)
			s := only(t, Settings{AppriseURLs: url + tt.path + tt.more}, SenderOptions{})
			if s.Name() != tt.target {
				t.Errorf("name %q, want %q", s.Name(), tt.target)
			}
			if err := s.Send(t.Context(), delivery(t)); err != nil {
				t.Fatal(err)
			}
			r := <-requests
			if r.method != http.MethodPost || r.path != tt.path || r.header.Get("Content-Type") != "application/json" {
				t.Errorf("%s %s %v", r.method, r.path, r.header)
			}
			var got map[string]string
			if err := json.Unmarshal(r.body, &got); err != nil {
				t.Fatal(err)
			}
			m := openedMessage()
			want := map[string]string{"title": Title(m), "body": Text(m), "type": "info", "format": "text"}
			if tt.urls != "" {
				want["urls"] = tt.urls
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("body differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnswersOfAnAppriseAPI(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, more string
		status     int
		want       failure
	}{
		{"204 says that there is nobody to tell", "/ops", 204, failure{Permanent: true}},
		{"424 of many may pass, but has told some", "/ops", 424, failure{Partial: true}},
		{"424 of one may pass", " discord://id/" + sentinel, 424, failure{}},
		{"404 will not change", "/ops", 404, failure{Permanent: true}},
		{"500 may change", "/ops", 500, failure{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			url, _ := recorder(t, tt.status)
			f := failureFrom(t, t.Context(), only(t, Settings{AppriseURLs: url + "/notify" + tt.more}, SenderOptions{}))
			if f.Permanent != tt.want.Permanent || f.Partial != tt.want.Partial {
				t.Errorf("failure is %+v, want %+v", f, tt.want)
			}
			if !strings.Contains(f.Text, strings.TrimPrefix(url, "http://")) {
				t.Errorf("the error does not name the host: %s", f.Text)
			}
		})
	}
}
