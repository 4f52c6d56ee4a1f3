// Package forgetest holds forges for tests, which keep state and fail as real ones do: Fake, a provider in memory, the
// servers fakegithub and fakegitea, memhost, the git host in memory behind them, and httpfault, which makes any server
// misbehave.
package forgetest
