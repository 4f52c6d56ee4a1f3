package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"slices"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// maxPicture is how many bytes the picture of the README may have: it is part of every clone.
const maxPicture = 150_000

// takePicture writes the picture of the README: the upper part of the overview, light, with at most 256 colours so that
// it stays small.
func takePicture(ctx context.Context, address, file string) error {
	var shot []byte
	err := chromedp.Run(ctx,
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "light"}}),
		chromedp.EmulateViewport(1280, 900), chromedp.Navigate(address), chromedp.WaitVisible("main", chromedp.ByQuery),
		chromedp.CaptureScreenshot(&shot))
	if err != nil {
		return err
	}
	full, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		return err
	}
	var small bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&small, paletted(full)); err != nil {
		return err
	}
	if small.Len() > maxPicture {
		return fmt.Errorf("%s would have %d bytes, more than %d", file, small.Len(), maxPicture)
	}
	return os.WriteFile(file, small.Bytes(), 0o644) // #nosec G306: part of the sources
}

// paletted draws a picture with the 256 colours that it has most of, each other one as the nearest of them.
func paletted(full image.Image) *image.Paletted {
	bounds, counts := full.Bounds(), map[color.RGBA]int{}
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(full.At(x, y)).(color.RGBA) }
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			counts[at(x, y)]++
		}
	}
	var colours color.Palette
	most := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)))
	})
	for _, c := range most[:min(len(most), 256)] {
		colours = append(colours, c)
	}
	out, nearest := image.NewPaletted(bounds, colours), map[color.RGBA]uint8{}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			c := at(x, y)
			index, known := nearest[c]
			if !known {
				index = uint8(colours.Index(c)) //nolint:gosec // at most 256 colours
				nearest[c] = index
			}
			out.SetColorIndex(x, y, index)
		}
	}
	return out
}
