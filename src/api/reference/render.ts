// Renders pages of docs/api as HTML. Their text comes from our own contract, but is still escaped.
import MarkdownIt from 'markdown-it'
import { style } from './policy.ts'

/** Renders a page. `linkOf` returns the target of a link on the server. */
export function renderPage(markdown: string, linkOf: (href: string) => string): string {
  const parser = new MarkdownIt({ html: false })
  const { rules } = parser.renderer
  const escaped = parser.utils.escapeHtml
  rules.heading_open = (tokens, at) => {
    const title = tokens[at + 1]!.content
    return `<${tokens[at]!.tag} id="${anchorOf(title)}">`
  }
  rules.link_open = (tokens, at) => `<a href="${escaped(linkOf(String(tokens[at]!.attrGet('href'))))}">`
  // `tabindex` lets people scroll wide examples with the keyboard.
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

/** Anchor of a title, as in the files: lower case, dashes for spaces, and only letters, digits, dashes and underscores. */
function anchorOf(title: string): string {
  return title
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, '')
    .replaceAll(' ', '-')
}
