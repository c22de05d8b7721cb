import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nextPage } from './links.ts'

const cases: [header: string, next: string | undefined][] = [
  ['', undefined],
  ['</v2/x/tags/list?n=2&last=b>; rel="next"', 'tags/list?n=2&last=b'],
  ['</v2/x/tags/list?n=2&last=b>;rel=next', 'tags/list?n=2&last=b'],
  ['</v2/x/tags/list?last=b>; title="n"; rel="next"', 'tags/list?last=b'],
  ['</v2/x/tags/list?last=b>; rel="prev next"', 'tags/list?last=b'],
  ['</v2/x/tags/list?last=b>; title="a, <b>; rel=next"; rel=NEXT', 'tags/list?last=b'],
  ['</v2/x/tags/list?last=a>; rel="first", </v2/x/tags/list?last=b>; rel="next"', 'tags/list?last=b'],
  ['</style.css>; rel=preload, </v2/x/tags/list?last=b>; rel="next"', 'tags/list?last=b'],
  ['<https://elsewhere.example/pre/v2/x/tags/list?last=a,b>; rel="next"', 'tags/list?last=a,b'],
  ['<?last=b>; rel="next"', 'tags/list?last=b'],
  ['</v2/x/tags/list?last=b>;  rel="next"', 'tags/list?last=b'],
  ['</v2/x/tags/list?last=b>; title="a" ;  rel=next', 'tags/list?last=b'],
  ['</v2/x/tags/list?last=b> ;\t rel="next"', 'tags/list?last=b'],
  ['</v2/x/tags/list?last=b>; rel  =  next', 'tags/list?last=b'],
  ['</v2/x/tags/list?last=b>; x-note1="a; rel=prev"; rel="next"', 'tags/list?last=b'],
  ['</v2/x/tags/list?last=b>; rel="last"', undefined],
  ['</v2/x/tags/list?last=b>; rel="prev"; rel="next"', undefined],
  ['</v2/x/tags/list?last=b>; title="rel=next"; rel=last', undefined],
  ['</v2/x/tags/list?last=b>; title="rel=next"', 'lost'],
  ['</v2/x/tags/page2>; rel="next"', 'lost'],
  ['</v2/x/tags/list>; rel="next"', 'lost'],
  ["</v2/x/tags/list?last=b>; rel='next'", 'tags/list?last=b'],
  ['</style.css>; rel=preload; crossorigin, </v2/x/tags/list?last=b>; rel=next', 'tags/list?last=b'],
  ['</style.css>; rel=preload; crossorigin,, ', undefined],
  ['/v2/x/tags/list?last=b; rel="next"', 'lost'],
  ['</v2/x/tags/list?last=b; rel="next"', 'lost'],
  ['</v2/x/tags/list?last=b>; rel="next', 'lost'],
  ['</v2/x/tags/list?last=b>', 'lost'],
  ['</style.css>; rel=preload, /v2/x/tags/list?last=b; rel="next"', 'lost'],
  ['; rel="next"', 'lost'],
  [`</v2/x/tags/list?last=${'b'.repeat(20_000)}>; rel="next"`, 'lost'],
]

for (const [header, next] of cases) {
  test(`reads the next page of ${header.slice(0, 90) || 'no link'}`, () => {
    assert.equal(nextPage(header, 'tags/list'), next)
  })
}
