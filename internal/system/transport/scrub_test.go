package transport_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
)

// forms are ways in which the token may be written.
func forms() []string {
	out := []string{
		token, url.QueryEscape(token), url.PathEscape(token), strings.ReplaceAll(url.QueryEscape(token), "%2F", "%2f"),
		strings.TrimPrefix(url.UserPassword("", token).String(), ":"),
		url.QueryEscape(url.QueryEscape(token)), strings.ReplaceAll(token, "&", `\u0026`),
	}
	for _, user := range []string{"", "a:", "ab:", "joe:", "token:", "x-access-token:"} {
		out = append(out,
			base64.StdEncoding.EncodeToString([]byte(user+token)), base64.URLEncoding.EncodeToString([]byte(user+token)),
			base64.RawStdEncoding.EncodeToString([]byte(user+token+"@host")))
	}
	return out
}

// free fails if a text holds the token in any form.
func free(t *testing.T, text string) {
	t.Helper()
	for _, form := range forms() {
		if strings.Contains(text, form) {
			t.Errorf("%q holds %q", text, form)
		}
	}
}

func TestScrubTakesTheTokenOutInEveryForm(t *testing.T) {
	b := newBed(t, hello)
	for _, form := range forms() {
		for _, text := range []string{form, "x " + form + " y", `Authorization: Basic ` + form + `"`, form + form} {
			got := b.Scrub(text)
			free(t, got)
			if !strings.Contains(got, "[redacted]") {
				t.Errorf("%q became %q", text, got)
			}
		}
	}
	for in, want := range map[string]string{
		"nothing to hide here, path a/b": "nothing to hide here, path a/b",
		"get https://joe:pw@h/p?q=1 now": "get https://h/p now",
		`Get "http://h/p?access=x": EOF`: `Get "http://h/p": EOF`,
		"is it? yes":                     "is it? yes",
		"mail joe@example.test":          "mail joe@example.test",
	} {
		if got := b.Scrub(in); got != want {
			t.Errorf("%q became %q", in, got)
		}
	}
}

func TestNoErrorAndNoLogLineHoldsTheToken(t *testing.T) {
	for _, form := range forms() {
		b := newBed(t, hello)
		b.Plan(nil, httpfault.Fault{Kind: httpfault.Status, Status: 500, Header: http.Header{"X-Request-Id": {form}}})
		b.Plan(nil, httpfault.Fault{Kind: httpfault.Redirect, Target: "http://127.0.0.1:1/" + url.PathEscape(form)})
		b.Plan(nil, httpfault.Fault{Kind: httpfault.ResetBefore})
		b.Plan(nil, httpfault.Fault{Kind: httpfault.Status, Status: 302,
			Header: http.Header{"Location": {"http://[" + form}}})
		path := "/" + url.PathEscape(form) + "?access_token=" + url.QueryEscape(form)
		for range 4 {
			got := b.do(t.Context(), "POST", path)
			read := b.do(t.Context(), "GET", path)
			for _, f := range []*fault.Error{got.fault, read.fault} {
				if f != nil {
					free(t, fmt.Sprintf("%s %v %+v %#v", f.Message, f.Cause, f.Cause, f.Cause))
				}
			}
		}
		foreign := b.Failure(&url.Error{Op: "Get", URL: "https://h/?t=" + form, Err: errors.New("about " + form)})
		free(t, fmt.Sprintf("%v %v %#v", foreign, foreign.Cause, foreign.Cause))
		said := b.StatusFault(&http.Response{StatusCode: 500, Header: http.Header{"X-Request-Id": {form}}}, "you sent "+form)
		free(t, said.Message)
		if b.log.String() == "" || strings.Contains(b.log.String(), "access_token") {
			t.Errorf("log: %s", b.log)
		}
		free(t, b.log.String())
	}
}
