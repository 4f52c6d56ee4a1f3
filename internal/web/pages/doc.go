// Package pages renders pages: their templates, and the text that agents and reviewers wrote made harmless. Whatever a
// template writes is cleaned and redacted (see Shower), so that views can hold records as they are. It knows no HTTP,
// no record and no provider; internal/web/dashboard has the views.
//
// The pages work without JavaScript, refer to nothing outside the server, and have no inline script or style, so that
// the strictest content security policy holds.
package pages
