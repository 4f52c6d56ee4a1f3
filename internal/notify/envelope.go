package notify

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"

	"github.com/claudeops/claudeops/internal/record"
)

// envelope is the payload of a notice: one target, and the message as the target gets it.
type envelope struct {
	Target  string          `json:"target"`
	Message json.RawMessage `json:"message"`
}

// Notices makes the notices of an event, one for each target (Targets.Names), so that each is retried by itself. No
// targets make no notices. It fails where Marshal does.
func Notices(m Message, targets ...string) ([]record.Notice, error) {
	body, err := Marshal(m)
	if err != nil {
		return nil, err
	}
	var out []record.Notice
	for _, target := range targets {
		payload, err := encode(envelope{target, body})
		if err != nil {
			return nil, err
		}
		out = append(out, record.Notice{Event: m.Event, Payload: payload})
	}
	return out, nil
}

// open reads the payload of a notice. Its errors hold nothing of the payload.
func open(payload []byte) (target string, d Delivery, err error) {
	const room = 1 << 10 // for the target and the names around it
	if len(payload) > MaxPayload+room {
		return "", Delivery{}, errors.New("the notice is larger than any that this program writes")
	}
	var e envelope
	if err := json.Unmarshal(payload, &e); err != nil {
		return "", Delivery{}, errors.New("the notice is not the JSON object that it should be")
	}
	if e.Target == "" {
		return "", Delivery{}, errors.New("the notice names no target")
	}
	m, err := Parse(e.Message)
	if err != nil {
		return "", Delivery{}, err
	}
	return e.Target, Delivery{ID: deliveryID(e), Message: m, Body: e.Message}, nil
}

// deliveryID tells deliveries apart and is the same at each attempt of one: a digest, so that nothing has to be kept
// for it, and no counter, which would begin anew with a new store. The request id and the time in the message make it
// differ from every other one's.
func deliveryID(e envelope) string {
	sum := sha256.Sum256([]byte(e.Target + "\n" + string(e.Message)))
	return hex.EncodeToString(sum[:16])
}
