// This file locks open files between processes.

package files
