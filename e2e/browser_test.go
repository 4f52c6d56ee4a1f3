//go:build e2e && linux

package e2e

import (
	"context"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// step does something in the browser and has no value.
type step = chromedp.Action[chromedp.Void]

// into runs an action and keeps its value.
func into[T any](action chromedp.Action[T], out *T) step {
	return chromedp.Func(func(ctx context.Context, tab *chromedp.Target) (err error) {
		*out, err = action(ctx, tab)
		return err
	})
}

// evaluated evaluates a script and keeps its value.
func evaluated[T any](script string, out *T, options ...chromedp.EvaluateOption) step {
	return into(chromedp.Evaluate[T](script, options...), out)
}

// protocol sends a command of the DevTools protocol.
func protocol[P, R any](c cdp.Command[P, R], params P) chromedp.Action[R] {
	return func(ctx context.Context, tab *chromedp.Target) (R, error) { return cdp.Call(ctx, tab, c, params) }
}

// commanded sends one whose result does not matter.
func commanded[P, R any](c cdp.Command[P, R], params P) step {
	return into(protocol(c, params), new(R))
}

// sized gives the page a size in pixels; a narrow one is that of a phone.
func sized(width, height int64) step {
	return commanded(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 500,
	})
}

// coloured has the page asked for light or dark colours.
func coloured(scheme string) step {
	return commanded(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
}

func withoutScripts() step {
	return commanded(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
}

func withoutCookies() step { return commanded(network.ClearBrowserCookies, cdp.Empty{}) }

// executed runs a script whose value does not matter.
func executed(script string, options ...chromedp.EvaluateOption) step {
	return chromedp.Evaluate[chromedp.Void](script, options...)
}
