import assert from 'node:assert/strict'
import { test } from 'node:test'
import { problemOfReadme } from './readme.ts'

const fine = {
  empty: '',
  prose: '# Title\n\nText with *emphasis*, `code` and a [link](https://example.com/a?b=c&d=e).\n',
  table: '| a | b |\n|:--|--:|\n| 1 | 2 |\n',
  code: '```sh\necho "a < b" && true\n```\n',
  image: '<img src="https://example.com/x.png" width="10" height="20" alt="x">\n',
  comment: 'a\n\n<!-- kept for editors -->\n\nb\n',
  quotes: 'He said "a & b" <br> and left\n',
  list: '1. one\n2. two\n\n- [x] done\n',
}
const refused = {
  script: '<script>alert(1)</script>',
  handler: '<img src="https://example.com/x.png" onerror="alert(1)">',
  scheme: '<a href="javascript:alert(1)">x</a>',
  data: '<a href="data:text/html,x">x</a>',
  style: '<style>body{display:none}</style>',
  styled: '<p style="position:fixed">x</p>',
  frame: '<iframe src="https://example.com"></iframe>',
  form: '<form action="https://example.com"><input name="a"></form>',
  svg: '<svg><script>1</script></svg>',
  classed: '<code class="x">y</code>',
  split: '<scr<script>ipt>alert(1)</scr</script>ipt>',
}

for (const [name, content] of Object.entries(fine)) {
  test(`accepts a readme with ${name}`, () => assert.equal(problemOfReadme(content), undefined))
}
for (const [name, content] of Object.entries(refused)) {
  test(`refuses a readme with ${name}`, () => assert.match(problemOfReadme(content) ?? '', /not allowed/))
}
