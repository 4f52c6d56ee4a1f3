// Package packages makes, shares and resolves packages of agents' procedures, in the formats of AAM: aam.yaml, archives
// *.aam, registries in folders (docs/guides/packages.md).
package packages
