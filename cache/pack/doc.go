// Package pack keeps slabs compressed, in memory that is not Go's.
//
// A slab is cut into blocks that are packed each by itself, so that several
// processors can unpack one slab, and a range of it needs no more than its own
// blocks. A block carries two sums: one of what is stored, which is compared
// before a decompressor sees it, and one of the plain bytes, which is compared
// before a byte leaves the package. Whatever memory or a codec does to a byte, a Get
// fails rather than hand it out.
//
// Packed bytes live in anonymous mappings and count in whole pages, which is
// their real cost. A dropped slab's memory goes back to the system at once, or as
// soon as the last Get of it ends.
//
// Which codec is worth its time is not known beforehand: a Chooser tries them
// on samples of a dataset. Whether one slab is worth it shows when its first
// eighth is packed, and it is refused if not.
package pack
