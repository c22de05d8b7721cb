import MarkdownIt from 'markdown-it'
import sanitizeHtml from 'sanitize-html'
import { maxReadmeBytes } from './repos.model.ts'

// Markdown is rendered once and sanitized twice: without a policy, and with the policy for user content. If both results are
// equal, the policy had nothing to remove.
const markdown = new MarkdownIt({ html: true, linkify: false })

const everything: sanitizeHtml.IOptions = {
  allowedTags: false,
  allowedAttributes: false,
  allowedClasses: {},
  allowedSchemesAppliedToAttributes: [],
  allowVulnerableTags: true,
  allowProtocolRelative: true,
  parseStyleAttributes: false,
}

const policy: sanitizeHtml.IOptions = {
  allowedTags: [...sanitizeHtml.defaults.allowedTags, 'img', 'del', 'ins', 'details', 'summary', 'picture', 'source'],
  allowedAttributes: {
    '*': ['id', 'title', 'lang', 'dir', 'align'],
    a: ['href', 'name', 'rel', 'target'],
    img: ['src', 'alt', 'width', 'height'],
    source: ['srcset', 'media', 'type'],
    code: ['class'],
    ol: ['start'],
    td: ['colspan', 'rowspan', 'style'],
    th: ['colspan', 'rowspan', 'scope', 'style'],
    details: ['open'],
  },
  allowedClasses: { code: [/^language-[A-Za-z0-9+#.-]+$/] },
  allowedStyles: { '*': { 'text-align': [/^(?:left|right|center)$/] } },
  allowedSchemes: ['http', 'https', 'mailto'],
  parseStyleAttributes: true,
  allowProtocolRelative: false,
}

/** Reason why this Markdown is not allowed as a readme. Returns undefined if it is allowed. */
export function problemOfReadme(content: string): string | undefined {
  if (Buffer.byteLength(content) > maxReadmeBytes) return `must be at most ${maxReadmeBytes} bytes`
  const html = markdown.render(content)
  if (sanitizeHtml(html, everything) === sanitizeHtml(html, policy)) return undefined
  return 'renders to HTML that is not allowed: scripts, styles, forms, frames, event handlers or unsafe links'
}
