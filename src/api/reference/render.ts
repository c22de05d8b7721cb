// The pages of docs/api as HTML. They are made from the contract and so are ours; still nothing in them can be markup.
import { createHash } from 'node:crypto'
import MarkdownIt from 'markdown-it'

const style = `body{font:16px/1.5 system-ui,sans-serif;max-width:56rem;margin:2rem auto;padding:0 1rem}
h1,h2,h3{line-height:1.25}h2{margin-top:2.5rem}
code,pre{font-family:ui-monospace,monospace;font-size:.875em}
pre{background:#f4f4f4;color:#1a1a1a;padding:.75rem;overflow-x:auto}
table{border-collapse:collapse;display:block;overflow-x:auto}th,td{text-align:left;vertical-align:top;padding:.25rem .75rem .25rem 0}
@media(prefers-color-scheme:dark){:root{color-scheme:dark}pre{background:#262626;color:#eee}}`

/** Nothing is loaded and nothing runs on a page but its own style. */
export const policy: string = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** `linkOf` says where a link of the text leads on the server. */
export function renderPage(markdown: string, linkOf: (href: string) => string): string {
  const parser = new MarkdownIt({ html: false })
  const { rules } = parser.renderer
  const escaped = parser.utils.escapeHtml
  rules.heading_open = (tokens, at) => {
    const title = tokens[at + 1]!.content
    return `<${tokens[at]!.tag} id="${anchorOf(title)}">`
  }
  rules.link_open = (tokens, at) => `<a href="${escaped(linkOf(String(tokens[at]!.attrGet('href'))))}">`
  // Wide examples are scrolled, by keyboard too.
  rules.fence = (tokens, at) => `<pre tabindex="0"><code>${escaped(tokens[at]!.content)}</code></pre>\n`
  const text = markdown.replace(/^<!--.*?-->\s*/s, '')
  const title = /^# (.+)$/m.exec(text)?.[1] ?? 'Reference'
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${escaped(title)} - Pinfold</title>
<style>${style}</style>
<main>
${parser.render(text)}</main>
</html>
`
}

/** As in the files: lower case, dashes for spaces, nothing but letters, digits, dashes and underscores. */
function anchorOf(title: string): string {
  return title
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, '')
    .replaceAll(' ', '-')
}
