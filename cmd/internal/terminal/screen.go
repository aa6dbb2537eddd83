package terminal

import (
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// A Screen is a terminal on which a picture is drawn over and over, beside what
// was there: the terminal's other screen, which goes when the command ends.
type Screen struct {
	w    *os.File
	Size func() (columns, rows int)
}

// What a terminal is told; all since the VT100 and xterm know it.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // the other screen, no cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	home        = "\x1b[H"
	endOfLine   = "\x1b[K\r\n" // and nothing to the right of it
	nothingElse = "\x1b[J"     // below
)

// NewScreen is the screen of w, or nil if w is not a terminal that can be drawn on.
func NewScreen(w io.Writer) *Screen {
	if widthOf(w) == nil {
		return nil
	}
	f := w.(*os.File)
	return &Screen{f, func() (int, int) {
		size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
		if err != nil || size.Col == 0 || size.Row == 0 {
			return 80, 24 // a terminal that does not know
		}
		return int(size.Col), int(size.Row)
	}}
}

// Open shows the other screen, Close the one before.
func (s *Screen) Open()  { _, _ = io.WriteString(s.w, enterScreen) }
func (s *Screen) Close() { _, _ = io.WriteString(s.w, leaveScreen) }

// Draw writes the lines over those before, in one piece so that nothing
// flickers. They fit: the last one is not ended, or the picture would scroll.
func (s *Screen) Draw(lines []string) error {
	_, err := io.WriteString(s.w, home+strings.Join(lines, endOfLine)+"\x1b[K"+nothingElse)
	return err
}
