// Package pages renders the dashboard: one view struct and one template per page, and the text that agents and reviewers
// wrote made harmless. It knows no HTTP, no record and no provider; internal/web fills the views.
//
// The pages work without JavaScript, refer to nothing outside the server, and have no inline script or style, so that the
// strictest content security policy holds.
package pages
