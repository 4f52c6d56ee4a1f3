// Package filelock locks open files between processes.
package filelock
