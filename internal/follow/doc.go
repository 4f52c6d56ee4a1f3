// Package follow keeps the records of our pull requests true: it looks at the provider when a webhook says that something has
// happened, and by itself at an interval. What it records is what the provider answers, never what a webhook claims, so that a
// delivery that is forged, repeated or late leads at worst to one look more.
//
// It only reads at providers. The gates do not ask its records.
package follow
