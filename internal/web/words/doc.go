// Package words says in people's words what the records say in ours: states, codes, ages, money and names. All pages
// use it, so that a thing is called the same everywhere.
package words
