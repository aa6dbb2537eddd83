package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"

	"rankfs/cmd/internal/control"
)

// writeIndexed says what came of create or refresh.
func writeIndexed(w io.Writer, d control.Dataset) {
	fmt.Fprintf(w, "%s: %s, %s in %s of %s for %s\n", d.Name, plural(d.Records, "record"), size(d.Bytes),
		plural(d.Steps, "step"), batch(d), plural(d.Ranks, "rank"))
	writeNotes(w, d)
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
			fmt.Fprintf(w, "%s: %s\n", d.Name, wrap(cmp.Or(d.Reason, d.State), 78-len(d.Name), "  "))
		}
	}
}

func writeDatasetTable(w io.Writer, indent string, list []control.Dataset) {
	t := newTable(indent, "NAME", "STATE", " RECORDS", " SIZE", " RANKS", " BATCH", " STEPS", "ORDER")
	for _, d := range list {
		t.add(d.Name, d.State, count(d.Records), size(d.Bytes), count(d.Ranks), d.Batch, count(d.Steps), d.Order)
	}
	t.write(w)
}

func writeDataset(w io.Writer, d control.Dataset) {
	state := d.State
	if d.Reason != "" {
		state += ": " + d.Reason
	}
	const indent = 9 // of the values
	pairs(w, "",
		"name", d.Name,
		"state", wrap(state, 80-indent, "         "),
		"source", d.Source,
		"version", d.Version,
		"records", count(d.Records),
		"size", fmt.Sprintf("%s (%s bytes)", size(d.Bytes), count(d.Bytes)),
		"chunks", count(d.Chunks),
		"ranks", count(d.Ranks),
		"batch", batch(d),
		"steps", count(d.Steps),
		"order", d.Order,
		"seed", fmt.Sprint(d.Seed),
		"tail", d.Tail,
		"index", size(d.IndexBytes),
		"created", date(d.Created),
	)
	writeNotes(w, d)
}
