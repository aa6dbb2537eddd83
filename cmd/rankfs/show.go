package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"

	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/terminal"
)

// writeIndexed says what came of create or refresh.
func writeIndexed(w io.Writer, d control.Dataset) {
	fmt.Fprintf(w, "%s: %s, %s in %s of %s for %s\n", d.Name, terminal.Plural(d.Records, "record"), terminal.Bytes(d.Bytes),
		terminal.Plural(d.Steps, "step"), batch(d), terminal.Plural(d.Ranks, "rank"))
	writeNotes(w, d)
}

// writeRefreshed says what came of refresh, and what it cannot do: a directory of the former
// version stands for that as long as a process is in it.
func writeRefreshed(w io.Writer, d control.Dataset) {
	writeIndexed(w, d)
	fmt.Fprintln(w, "note: who stands in a directory of it, a shell or a program, gets ESTALE there:\n  enter it again by its path, as with: cd \"$PWD\"")
}

func batch(d control.Dataset) string {
	switch {
	case d.Batch == "chunk":
		return "a chunk"
	case d.Batch == "1":
		return "1 record"
	case d.Batch[len(d.Batch)-1] == 'B':
		return d.Batch
	}
	return d.Batch + " records"
}

func writeNotes(w io.Writer, d control.Dataset) {
	for _, key := range slices.Sorted(maps.Keys(d.Notes)) {
		fmt.Fprintf(w, "note: %s: %s\n", key, d.Notes[key])
	}
}

func writeDatasets(w io.Writer, list []control.Dataset) {
	if len(list) == 0 {
		fmt.Fprintln(w, "no datasets; register one with: rankfs dataset create NAME --source URI")
		return
	}
	writeDatasetTable(w, "", list)
	for _, d := range list {
		if d.State != "ready" {
			fmt.Fprintf(w, "%s: %s\n", d.Name, terminal.Wrap(cmp.Or(d.Reason, d.State), 78-len(d.Name), "  "))
		}
	}
}

func writeDatasetTable(w io.Writer, indent string, list []control.Dataset) {
	t := terminal.NewTable(indent, "NAME", "STATE", " RECORDS", " SIZE", " RANKS", " BATCH", " STEPS", "ORDER")
	for _, d := range list {
		t.Add(d.Name, d.State, terminal.Count(d.Records), terminal.Bytes(d.Bytes), terminal.Count(d.Ranks), d.Batch, terminal.Count(d.Steps), d.Order)
	}
	t.Write(w)
}

func writeDataset(w io.Writer, d control.Dataset) {
	state := d.State
	if d.Reason != "" {
		state += ": " + d.Reason
	}
	const indent = 9 // of the values
	terminal.Pairs(w, "",
		"name", d.Name,
		"state", terminal.Wrap(state, 80-indent, "         "),
		"source", d.Source,
		"version", d.Version,
		"records", terminal.Count(d.Records),
		"size", fmt.Sprintf("%s (%s bytes)", terminal.Bytes(d.Bytes), terminal.Count(d.Bytes)),
		"chunks", terminal.Count(d.Chunks),
		"ranks", terminal.Count(d.Ranks),
		"batch", batch(d),
		"steps", terminal.Count(d.Steps),
		"order", d.Order,
		"seed", fmt.Sprint(d.Seed),
		"tail", d.Tail,
		"index", terminal.Bytes(d.IndexBytes),
		"created", date(d.Created),
	)
	writeNotes(w, d)
}
