// Package forges is the table of the forges that the product knows. One that is added here is read from the
// environment, wired, looked at by doctor and listened to by serve; docs/guides/development.md says what else it takes.
package forges

import (
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
	"github.com/claudeops/claudeops/internal/gitprovider/gitea"
	"github.com/claudeops/claudeops/internal/gitprovider/github"
)

// All returns the drivers in the order in which documentation has them.
func All() []forge.Driver {
	return []forge.Driver{github.Driver(), gitea.Driver()}
}
