package notify

import (
	"context"
	"net/http"
	"time"
)

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
