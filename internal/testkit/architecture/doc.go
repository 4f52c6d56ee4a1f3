// Package architecture holds the rules of the project's shape: which package may import which, and which may touch
// files, processes and the network. They are tests with the build tag lint, which `make lint` runs.
package architecture
