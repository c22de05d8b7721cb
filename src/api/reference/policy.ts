// Style of the reference pages, and the content security policy that allows nothing else.
import { createHash } from 'node:crypto'

export const style = `body{font:16px/1.5 system-ui,sans-serif;max-width:56rem;margin:2rem auto;padding:0 1rem}
h1,h2,h3{line-height:1.25}h2{margin-top:2.5rem}
code,pre{font-family:ui-monospace,monospace;font-size:.875em}
pre{background:#f4f4f4;color:#1a1a1a;padding:.75rem;overflow-x:auto}
table{border-collapse:collapse;display:block;overflow-x:auto}th,td{text-align:left;vertical-align:top;padding:.25rem .75rem .25rem 0}
@media(prefers-color-scheme:dark){:root{color-scheme:dark}pre{background:#262626;color:#eee}}`

/** Content security policy: a page can use only its own style, and no scripts. */
export const policy: string = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')
