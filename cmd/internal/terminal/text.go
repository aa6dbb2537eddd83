package terminal

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Bytes writes a number of bytes for a person: three digits, binary units.
func Bytes(n int64) string {
	if n < 1<<10 {
		return strconv.FormatInt(n, 10) + " B"
	}
	value, unit := float64(n), -1
	for value >= 999.5 && unit < 5 {
		value /= 1 << 10
		unit++
	}
	digits := 0
	if value < 9.95 {
		digits = 1
	}
	return fmt.Sprintf("%.*f %ciB", digits, value, "KMGTPE"[unit])
}

// Count writes a number with its thousands apart.
func Count[N int | int64 | uint64](n N) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Plural counts things: 1 record, 2 records.
func Plural[N int | int64 | uint64](n N, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return Count(n) + " " + thing
}

// Span writes a duration in its two largest units.
func Span(d time.Duration) string {
	switch d = d.Round(time.Second); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm %02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh %02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd %02dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

// Wrap breaks text into lines of at most width columns, each but the first
// after an indent.
func Wrap(text string, width int, indent string) string {
	var b strings.Builder
	column := 0
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case column+1+n > width:
			b.WriteString("\n" + indent)
			column = len(indent)
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String()
}

// A Table is written with its columns aligned, two blanks apart. A column
// whose title starts with a blank is aligned to the right.
type Table struct {
	indent string
	rows   [][]string
}

// NewTable has no rows yet.
func NewTable(indent string, titles ...string) *Table {
	return &Table{indent, [][]string{titles}}
}

// Add adds a row.
func (t *Table) Add(cells ...string) { t.rows = append(t.rows, cells) }

// Write writes it.
func (t *Table) Write(w io.Writer) {
	widths := make([]int, len(t.rows[0]))
	for _, row := range t.rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(strings.TrimPrefix(cell, " ")))
		}
	}
	for _, row := range t.rows {
		line := t.indent
		for i, cell := range row {
			cell = strings.TrimPrefix(cell, " ")
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if strings.HasPrefix(t.rows[0][i], " ") {
				line += pad + cell + "  "
			} else {
				line += cell + pad + "  "
			}
		}
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
}

// Pairs writes names and values in two columns, leaving out empty values.
func Pairs(w io.Writer, indent string, cells ...string) {
	width := 0
	for i := 0; i < len(cells); i += 2 {
		width = max(width, len(cells[i]))
	}
	for i := 0; i < len(cells); i += 2 {
		if cells[i+1] != "" {
			fmt.Fprintf(w, "%s%-*s  %s\n", indent, width, cells[i], cells[i+1])
		}
	}
}

// Percent writes a share; all of it only if it is all.
func Percent(share float64) string {
	p := strconv.FormatFloat(math.Floor(share*1000)/10, 'f', 1, 64)
	if share == 1 {
		p = "100"
	}
	return p + "%"
}

// Seconds writes a time with three digits, or in its two largest units.
func Seconds(s float64) string {
	switch {
	case s < 1:
		return fmt.Sprintf("%.3g ms", s*1000)
	case s < 100:
		return fmt.Sprintf("%.3g s", s)
	}
	return Span(time.Duration(s * float64(time.Second)))
}
