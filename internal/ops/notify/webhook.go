package notify

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"time"
)

// The headers of the webhook; docs/guides/notifications.md says what they hold.
const (
	HeaderEvent     = "Claudeops-Event"
	HeaderDelivery  = "Claudeops-Delivery"
	HeaderTimestamp = "Claudeops-Timestamp"
	HeaderSignature = "Claudeops-Signature"
)

// sign sets the timestamp and, if there is a secret, the signature.
func sign(header http.Header, secret string, now time.Time, body []byte) {
	timestamp := strconv.FormatInt(now.Unix(), 10)
	header.Set(HeaderTimestamp, timestamp)
	if secret == "" {
		return
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(timestamp + "."))
	mac.Write(body)
	header.Set(HeaderSignature, "v1="+hex.EncodeToString(mac.Sum(nil)))
}

// webhook posts the JSON form of a message, signed.
type webhook struct {
	name   string
	post   poster
	secret string // "": unsigned
	now    func() time.Time
}

// Name implements Sender.
func (w *webhook) Name() string { return w.name }

// Send implements Sender.
func (w *webhook) Send(ctx context.Context, d Delivery) error {
	header := http.Header{}
	header.Set(HeaderEvent, string(d.Message.Event))
	header.Set(HeaderDelivery, d.ID)
	sign(header, w.secret, w.now(), d.Body)
	status, retryAfter, err := w.post.post(ctx, d.Body, header)
	if err != nil {
		return err
	}
	if status/100 != 2 {
		return w.post.refused(status, retryAfter)
	}
	return nil
}
