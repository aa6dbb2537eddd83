// Package terminal answers how numbers, tables and progress are shown to a person,
// on a screen or in plain lines.
package terminal
