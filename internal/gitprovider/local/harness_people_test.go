package local_test

import (
	"github.com/claudeops/claudeops/internal/gitprovider/local"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
)

var _ providertest.Commenter = (*world)(nil)

// Comment implements providertest.Commenter.
func (w *world) Comment(number int, author, body string) {
	w.t.Helper()
	if err := w.review.Comment(w.t.Context(), w.Ref(), number, local.Note{Who: author, Body: body}); err != nil {
		w.t.Fatal(err)
	}
}
