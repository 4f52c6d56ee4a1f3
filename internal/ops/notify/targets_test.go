package notify

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/testkit/must"
)

// described lists targets as name -> where it goes, for comparison.
func described(t Targets) []string {
	out := []string{}
	for _, one := range t.list {
		where := "command"
		if one.server != nil {
			where = one.server.String()
		}
		if one.notify != "" {
			where += " " + one.notify
		}
		if one.secret != "" {
			where += " signed"
		}
		out = append(out, one.name+" -> "+where)
	}
	return out
}

func TestParseTargets(t *testing.T) {
	t.Parallel()
	const secret = "0123456789abcdef"
	tests := []struct {
		name     string
		s        Settings
		want     []string
		problems []string // how each begins
	}{
		{"nothing configured", Settings{}, []string{}, nil},
		{"blank lists", Settings{AppriseURLs: " , ,\n", WebhookURL: " "}, []string{}, nil},
		{"notification URLs go to the command", Settings{AppriseURLs: "discord://id/token mailto://a:b@example.org"},
			[]string{"apprise-discord -> command discord://id/token", "apprise-mailto -> command mailto://a:b@example.org"},
			nil},
		{"commas, spaces and lines separate", Settings{AppriseURLs: "a://1,b://2, c://3 ,\n\td://4,,e://5,"},
			[]string{
				"apprise-a -> command a://1", "apprise-b -> command b://2", "apprise-c -> command c://3",
				"apprise-d -> command d://4", "apprise-e -> command e://5",
			}, nil},
		{"a comma within a URL stays", Settings{AppriseURLs: "mailto://x?to=a@example.org,b@example.org,slack://y"},
			[]string{
				"apprise-mailto -> command mailto://x?to=a@example.org,b@example.org", "apprise-slack -> command slack://y",
			}, nil},
		{"the second of a kind is numbered", Settings{AppriseURLs: "ntfy://a ntfy://b NTFY://c"},
			[]string{
				"apprise-ntfy -> command ntfy://a", "apprise-ntfy-2 -> command ntfy://b", "apprise-ntfy-3 -> command NTFY://c",
			}, nil},
		{"a server with a key knows whom to tell",
			Settings{AppriseURLs: "https://apprise.example.net/notify/ops?tag=all ntfy://a"},
			[]string{"apprise-api -> https://apprise.example.net/notify/ops?tag=all", "apprise-ntfy -> command ntfy://a"}, nil},
		{"a server without a key is given the other URLs",
			Settings{AppriseURLs: "ntfy://a https://apprise.example.net/x/notify/ slack://b"},
			[]string{
				"apprise-ntfy -> https://apprise.example.net/x/notify/ ntfy://a",
				"apprise-slack -> https://apprise.example.net/x/notify/ slack://b",
			}, nil},
		{"a server without a key and no other URL has its own", Settings{AppriseURLs: "http://localhost:8000/notify"},
			[]string{"apprise-api -> http://localhost:8000/notify"}, nil},
		{"a key may be the word notify", Settings{AppriseURLs: "http://[::1]:8000/notify/notify"},
			[]string{"apprise-api -> http://[::1]:8000/notify/notify"}, nil},
		{"Apprise's own scheme for servers goes to the command", Settings{AppriseURLs: "apprises://apprise.example.net/ops"},
			[]string{"apprise-apprises -> command apprises://apprise.example.net/ops"}, nil},
		{"only one server without a key", Settings{AppriseURLs: "http://127.0.0.1:1/notify http://127.0.0.1:2/notify"},
			[]string{"apprise-api -> http://127.0.0.1:1/notify"},
			[]string{"CLAUDEOPS_APPRISE_URLS, entry 2 is a second server"}},
		{"the address of a service is not a server",
			Settings{AppriseURLs: "https://discord.com/api/webhooks/12/hunter2 ntfy://a"},
			[]string{"apprise-ntfy -> command ntfy://a"}, []string{"CLAUDEOPS_APPRISE_URLS, entry 1 is a web address, but"}},
		{"a key of odd characters is none", Settings{AppriseURLs: "https://apprise.example.net/notify/a.b"}, []string{},
			[]string{"CLAUDEOPS_APPRISE_URLS, entry 1 is a web address, but"}},
		{"what is not a URL",
			Settings{AppriseURLs: "hunter2 tag=ntfy://hunter2 ://hunter2 ntfy:// ntfy://a\x01hunter2 include /etc/passwd"},
			[]string{}, []string{
				"CLAUDEOPS_APPRISE_URLS, entry 1 is not a URL", "CLAUDEOPS_APPRISE_URLS, entry 2 is not a URL",
				"CLAUDEOPS_APPRISE_URLS, entry 3 is not a URL", "CLAUDEOPS_APPRISE_URLS, entry 4 is not a URL",
				"CLAUDEOPS_APPRISE_URLS, entry 5 is not a URL", "CLAUDEOPS_APPRISE_URLS, entry 6 is not a URL",
				"CLAUDEOPS_APPRISE_URLS, entry 7 is not a URL",
			}},
		{"the longest scheme", Settings{AppriseURLs: strings.Repeat("a", 32) + "://x " + strings.Repeat("b", 33) + "://x"},
			[]string{"apprise-" + strings.Repeat("a", 32) + " -> command " + strings.Repeat("a", 32) + "://x"},
			[]string{"CLAUDEOPS_APPRISE_URLS, entry 2 is not a URL"}},
		{"a URL of a whole file", Settings{AppriseURLs: "ntfy://" + strings.Repeat("a", 4096)}, []string{},
			[]string{"CLAUDEOPS_APPRISE_URLS, entry 1 is not a URL"}},
		{"the same twice", Settings{AppriseURLs: "ntfy://a ntfy://a"}, []string{"apprise-ntfy -> command ntfy://a"}, nil},
		{"a broken web address", Settings{AppriseURLs: "https://%zz/notify https:///notify"}, []string{},
			[]string{"CLAUDEOPS_APPRISE_URLS, entry 1 is not a URL of", "CLAUDEOPS_APPRISE_URLS, entry 2 is not a URL of"}},
		{"plain http beyond this machine",
			Settings{AppriseURLs: "http://apprise:8000/notify/ops", WebhookURL: "http://10.0.0.1/", WebhookSecret: secret},
			[]string{}, []string{
				"CLAUDEOPS_APPRISE_URLS, entry 1 would send over plain http",
				"CLAUDEOPS_WEBHOOK_URL would send over plain http",
			}},
		{"plain http where it is allowed", Settings{AppriseURLs: "http://apprise:8000/notify/ops", AllowPlainHTTP: true},
			[]string{"apprise-api -> http://apprise:8000/notify/ops"}, nil},
		{"a signed webhook", Settings{WebhookURL: " https://joe:pw@hooks.example.net/claude#x ", WebhookSecret: secret},
			[]string{"webhook -> https://joe:pw@hooks.example.net/claude signed"}, nil},
		{"an unsigned webhook", Settings{WebhookURL: "https://hooks.example.net/claude"},
			[]string{"webhook -> https://hooks.example.net/claude"}, []string{"CLAUDEOPS_WEBHOOK_SECRET is not set"}},
		{"a secret that can be guessed", Settings{WebhookURL: "https://hooks.example.net/", WebhookSecret: "hunter2"},
			[]string{"webhook -> https://hooks.example.net/ signed"},
			[]string{"CLAUDEOPS_WEBHOOK_SECRET is shorter than 16 bytes"}},
		{"a secret without a webhook", Settings{WebhookSecret: "hunter2"}, []string{},
			[]string{"CLAUDEOPS_WEBHOOK_SECRET is set, but"}},
		{"a webhook that is none", Settings{WebhookURL: "ftp://hunter2/", WebhookSecret: secret}, []string{},
			[]string{"CLAUDEOPS_WEBHOOK_URL is not a URL of"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, problems := ParseTargets(tt.s)
			must.Equal(t, described(got), tt.want)
			if len(problems) != len(tt.problems) {
				t.Fatalf("problems are %q, want %q", problems, tt.problems)
			}
			for i, problem := range problems {
				if !strings.HasPrefix(problem, tt.problems[i]) || strings.Contains(problem, "hunter2") {
					t.Errorf("problem %q, want it to begin with %q and to hold no secret", problem, tt.problems[i])
				}
			}
		})
	}
}

func TestTargetsDoNotPrintTheirSecrets(t *testing.T) {
	t.Parallel()
	targets, problems := ParseTargets(Settings{
		AppriseURLs: "discord://hunter2/hunter2", WebhookURL: "https://example.net/hunter2",
		WebhookSecret: "hunter2hunter2hunter2",
	})
	if len(problems) != 0 {
		t.Fatal(problems)
	}
	config := struct{ Notify Targets }{targets}
	for _, shown := range []string{
		fmt.Sprint(config), fmt.Sprintf("%+v", config), fmt.Sprintf("%#v", config), fmt.Sprintf("%s %v", targets, &targets),
		targets.LogValue().String(),
	} {
		if strings.Contains(shown, "hunter2") || !strings.Contains(shown, "apprise-discord webhook") {
			t.Errorf("printed as %s", shown)
		}
	}
	want := []string{"discord://hunter2/hunter2", "https://example.net/hunter2", "hunter2hunter2hunter2"}
	must.Equal(t, targets.Secrets(), want)
}

func FuzzParseTargets(f *testing.F) {
	f.Add("discord://a/b,mailto://c?to=d,e https://h/notify/k", "https://h/w")
	f.Add("http://localhost/notify\n//,://,a:// x", "http://[::1]:99999/")
	f.Add(",,,a://,b://,", "https://%2e/\x00")
	f.Fuzz(func(t *testing.T, list, hook string) {
		targets, _ := ParseTargets(Settings{AppriseURLs: list, WebhookURL: hook, WebhookSecret: "0123456789abcdef"})
		names := map[string]bool{}
		for _, one := range targets.list {
			if names[one.name] || one.name == "" {
				t.Errorf("the name %q is there twice or empty", one.name)
			}
			names[one.name] = true
			if strings.ContainsAny(one.notify, "\r\n \t") || one.server == nil && schemeOf(one.notify) == "" {
				t.Errorf("the command is given %q", one.notify)
			}
			if one.server != nil {
				if _, err := url.Parse(one.server.String()); err != nil || one.server.Host == "" {
					t.Errorf("a server is at %q: %v", one.server, err)
				}
			}
		}
	})
}

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
			must.Do(t, s.Send(t.Context(), delivery(t)))
			r := <-requests
			if r.method != http.MethodPost || r.path != tt.path || r.header.Get("Content-Type") != "application/json" {
				t.Errorf("%s %s %v", r.method, r.path, r.header)
			}
			var got map[string]string
			must.Do(t, json.Unmarshal(r.body, &got))
			m := openedMessage()
			want := map[string]string{"title": Title(m), "body": Text(m), "type": "info", "format": "text"}
			if tt.urls != "" {
				want["urls"] = tt.urls
			}
			must.Equal(t, got, want)
		})
	}
}

func TestAnswersOfAnAppriseAPI(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, more string
		status     int
		want       deliveryFailure
	}{
		{"204 says that there is nobody to tell", "/ops", 204, deliveryFailure{Permanent: true}},
		{"424 of many may pass, but has told some", "/ops", 424, deliveryFailure{Partial: true}},
		{"424 of one may pass", " discord://id/" + sentinel, 424, deliveryFailure{}},
		{"404 will not change", "/ops", 404, deliveryFailure{Permanent: true}},
		{"500 may change", "/ops", 500, deliveryFailure{}},
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
