package state_test

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"rankfs/meta"
	"rankfs/meta/state"
)

// Random commands against what the rules say of each alone: who won, what is sealed.
// Snapshots and restarts in between make no difference.
func TestPoolModel(t *testing.T) {
	nodes := []string{operator, leader, hostile, other}
	rapid.Check(t, func(r *rapid.T) {
		c := pooled(t, "maps=4 parts=2")
		won := make(map[uint64]uint64)
		kept := make(map[uint64]map[string]bool)
		generation, made := uint64(0), uint64(1)
		for range rapid.IntRange(1, 40).Draw(r, "commands") {
			node := rapid.SampledFrom(nodes).Draw(r, "node")
			m := rapid.Uint64Range(0, 3).Draw(r, "map")
			sum := rapid.Uint64Range(0, 2).Draw(r, "sum")
			switch rapid.IntRange(0, 9).Draw(r, "kind") {
			case 0:
				c.m = through(t, c.m)
			case 1:
				c.do(signedBy(node, &state.ResetStage{StageName: stageName, Generation: generation}))
				generation++
				clear(won)
				clear(kept)
			case 2:
				c.do(signedBy(node, &state.DropStage{StageName: stageName}))
				made++
				c.do(signedBy(node, &state.MakeStage{Job: "j", Name: "s", Nonce: 2 + made}))
				c.do(signedBy(node, &state.SpecifyStage{StageName: stageName, Spec: "maps=4 parts=2"}))
				generation = 0
				clear(won)
				clear(kept)
			case 3, 4:
				has := rapid.Bool().Draw(r, "has")
				_, err := c.try(signedBy(node, &state.KeepCopy{StageName: stageName, Node: node, Map: m, Sum: sum, Has: has}))
				is, ok := won[m]
				if good := ok && is == sum; good != (err == nil) {
					r.Fatalf("keep: %v", err)
				} else if good {
					delete(kept[m], node)
					if has {
						kept[m][node] = true
					}
				}
			default:
				maps := state.StageMaps{Stage: c.stage().Number, Generation: generation}
				for number := range uint64(4) {
					if number == m || rapid.Bool().Draw(r, "too") {
						sum := rapid.Uint64Range(0, 2).Draw(r, "sum")
						maps.Maps = append(maps.Maps, batchOf(node, state.Commit{Map: number, Sum: sum}).Maps[0].Maps...)
					}
				}
				result := c.do(signedBy(node, &state.CommitMaps{Maps: state.MapsByStage{maps}}))
				for i, one := range maps.Maps {
					got := result.Maps()[i]
					is, ok := won[one.Map]
					lost := ok && len(kept[one.Map]) == 0
					switch {
					case lost && is != one.Sum:
						if got.Commit != nil || !errors.Is(got.Error, meta.ErrUnequal) {
							r.Fatalf("commit of other bytes: %+v", got)
						}
						continue
					case got.Error != nil:
						r.Fatalf("commit: %v", got.Error)
					case !ok || lost:
						won[one.Map], kept[one.Map] = one.Sum, map[string]bool{node: true}
					}
					if got.Commit.Map != one.Map || got.Commit.Sum != won[one.Map] {
						r.Fatalf("map %d: %+v has won, want %d", one.Map, got.Commit, won[one.Map])
					}
				}
			}
			g := c.stage()
			if g.Maps != uint64(len(won)) || g.Sealed != (len(won) == 4) || g.Generation != generation {
				r.Fatalf("%+v with %d maps in generation %d", g, len(won), generation)
			}
			for _, one := range c.m.Commits(g.Number).All() {
				if want := slices.Sorted(maps.Keys(kept[one.Map])); one.Sum != won[one.Map] || !slices.Equal(slices.Sorted(slices.Values(one.Nodes)), want) {
					r.Fatalf("map %d: %+v, want %d on %v", one.Map, one, won[one.Map], want)
				}
			}
		}
	})
}
