package views

import (
	"rankfs/cmd/internal/catalog"
	"rankfs/meta"
)

// Open finds the view that is called NAME or NAME@options.
func (vs *Views) Open(name string) (*View, error) {
	v, d, err := vs.Resolve(name)
	if err != nil {
		return nil, err
	}
	return vs.newView(name, v, d)
}

func (vs *Views) newView(name string, v meta.View, d *catalog.Dataset) (*View, error) {
	key := v.String()
	s := &View{
		name: name, key: key, job: JobName(v, d.Default), asked: v, dataset: d, settler: make(chan struct{}, 1),
		ranks: viewRanks{Ranks: vs.Ranks, cluster: vs.config.Cluster, tasks: &vs.tasks, log: vs.config.Log, view: v, key: key, generation: d.Generation},
		state: vs.config.State, settled: vs.settled, maker: vs.maker, cache: vs.cache, stalls: vs.config.Stalls, memory: vs.Memory, queues: vs.queues,
	}
	if v.Assign == meta.AssignStrict || !d.Version.Source.Remote {
		// Nothing to choose from: all bytes are as near to one rank as to another.
		return s, s.assign(nil, true)
	}
	if p, ok := vs.config.State.SettledPlan(s.key); ok && p.Generation == d.Generation {
		return s, s.follow(p)
	}
	return s, s.assign(vs.Ranks.Seats(vs.Ranks.WouldBe(v)), false)
}
