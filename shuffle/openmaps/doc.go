// Package openmaps answers one question: which maps are open on this node, and what do they have
// of a part?
package openmaps
