package gateway_test

import (
	"testing"

	"github.com/claudeops/claudeops/internal/agents/gateway"
	"github.com/claudeops/claudeops/internal/agents/stdioproxy"
	"github.com/claudeops/claudeops/internal/base/fault"
)

func TestAHandshakeIsReadAsStrictlyAsArguments(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "null", "[]", `"x"`, "{}", `{"claudeops":1`, `{"claudeops":1} {}`, `{"claudeops":1}x`,
		`{"claudeops":2}`, `{"claudeops":null}`, `{"claudeops":"1"}`, `{"Claudeops":1}`,
		`{"claudeops":1,"claudeops":1}`, `{"claudeops":1,"tier":1,"tier":3}`, `{"claudeops":1,"ticket":"a","ticket":"b"}`,
		`{"claudeops":1,"dry_run":true,"dry_run":false}`,
		`{"claudeops":1,"tier":1,"\u0074ier":3}`,
		`{"claudeops":1,"tier":null}`, `{"claudeops":1,"ticket":null}`, `{"claudeops":1,"dry_run":null}`,
		`{"claudeops":1,"read_only":null}`,
		`{"claudeops":1,"Tier":1}`, `{"claudeops":1,"TICKET":"a"}`, `{"claudeops":1,"dry_Run":true}`,
		`{"claudeops":1,"Lower":{}}`, `{"claudeops":1,"session":"x"}`,
		`{"claudeops":1,"tier":"1"}`, `{"claudeops":1,"tier":1e0}`, `{"claudeops":1,"dry_run":1}`,
		"{\"claudeops\":1,\"ticket\":\"\xff\"}", `{"claudeops":1,"ticket":"\ud800"}`,
	} {
		if hello, refused := gateway.ReadHello([]byte(text)); refused == nil || refused.Code != fault.Unauthenticated ||
			hello != (stdioproxy.Hello{}) {
			t.Errorf("%q is %+v, %v", text, hello, refused)
		}
	}
	want := stdioproxy.Hello{Version: 1, Ticket: "t", Lower: stdioproxy.Lower{Tier: 2, DryRun: true, ReadOnly: true}}
	for _, text := range []string{
		`{"claudeops":1,"ticket":"t","tier":2,"dry_run":true,"read_only":true}`,
		" {\"read_only\" : true, \"dry_run\":true,\r\n\"tier\":2,\"ticket\":\"\\u0074\",\"claudeops\":1}\n",
	} {
		if hello, refused := gateway.ReadHello([]byte(text)); refused != nil || hello != want {
			t.Errorf("%q is %+v, %v", text, hello, refused)
		}
	}
}
