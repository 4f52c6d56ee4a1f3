package auditsink

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/system/filelock"
	"github.com/claudeops/claudeops/internal/system/files"
)

// fileSink is a file that only grows, one line for each row of the audit, from the first.
type fileSink struct{ path string }

func (s fileSink) name() string { return "file " + s.path }
func (fileSink) local() bool    { return true }

const (
	fileMode  = 0o600
	lockPoll  = 5 * time.Millisecond
	tailBytes = 4 << 10 // the last line is within it
)

func (s fileSink) begin(ctx context.Context) (delivery, error) {
	f, err := files.OpenAppend(s.path, fileMode)
	if errors.Is(err, files.ErrNotRegular) {
		return nil, errors.New("it is not a regular file")
	}
	if err != nil {
		return nil, reasonOf(err)
	}
	for taken := false; err == nil && !taken; {
		if taken, err = filelock.Try(f, true); err != nil || taken {
			break
		}
		select {
		case <-ctx.Done():
			err = errors.New("another process holds it")
		case <-time.After(lockPoll):
		}
	}
	if err != nil {
		return nil, errors.Join(reasonOf(err), f.Close())
	}
	return &fileDelivery{file: f}, nil
}

// reasonOf returns an error of a file without its path, which the sink's name has.
func reasonOf(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}

type fileDelivery struct {
	file *os.File
	torn bool // the last line has no end: its writer was killed
}

func (d *fileDelivery) last() (record.Head, bool, error) {
	size, err := d.file.Seek(0, io.SeekEnd)
	if err != nil || size == 0 {
		return record.Head{}, true, reasonOf(err)
	}
	tail := make([]byte, min(size, tailBytes))
	if _, err := d.file.ReadAt(tail, size-int64(len(tail))); err != nil {
		return record.Head{}, false, reasonOf(err)
	}
	d.torn = tail[len(tail)-1] != '\n'
	all := bytes.Split(tail, []byte("\n"))
	complete := all[:len(all)-1] // what follows the last line break is torn, or empty
	for i := len(complete) - 1; i >= 0; i-- {
		h, err := parseLine(complete[i])
		if err == nil {
			return h, true, nil
		}
		if !isTorn(complete[i]) {
			return record.Head{}, false, fmt.Errorf("its last line is not one that claudeops has written")
		}
	}
	return record.Head{}, len(tail) == int(size), nil
}

// isTorn reports whether a line is the beginning of one of ours, whose writer was killed.
func isTorn(text []byte) bool {
	const begins = `{"seq":`
	if len(text) < len(begins) {
		return bytes.HasPrefix([]byte(begins), text)
	}
	return bytes.HasPrefix(text, []byte(begins)) && !bytes.HasSuffix(text, []byte("}"))
}

func (d *fileDelivery) send(_ context.Context, heads []record.Head) error {
	text := lines(heads)
	if d.torn {
		text = append([]byte("\n"), text...)
	}
	if _, err := d.file.Write(text); err != nil {
		return reasonOf(err)
	}
	d.torn = false
	return reasonOf(d.file.Sync())
}

func (d *fileDelivery) end() error { return d.file.Close() }
