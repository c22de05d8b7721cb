import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gradeOf, syllablesOf } from '../../scripts/prose/readability.ts'
import { maxWords, problemsOf } from '../../scripts/prose/rules.ts'
import { sampleOf } from '../../scripts/prose/sample.ts'
import { textsOf } from '../../scripts/prose/texts.ts'

const rulesOf = (kind: 'docs' | 'comment' | 'test name', text: string) =>
  problemsOf({ kind, text }).map(({ rule }) => rule)

test('finds sentences that begin without a noun, and ignores questions', () => {
  for (const opening of ['What', 'Whoever', 'Those that', 'Of which', 'So many']) {
    assert.ok(rulesOf('docs', `It works. ${opening} is stored stays.`).includes('opening'), opening)
  }
  assert.deepEqual(rulesOf('docs', 'Where redirects are on, clients read from the bucket.'), [])
  assert.deepEqual(rulesOf('docs', 'What does it cost?'), [])
  for (const opening of ['Where', 'How', 'Whether', 'That']) {
    assert.deepEqual(rulesOf('comment', `${opening} it is stored.`), ['opening'], opening)
  }
  assert.deepEqual(rulesOf('test name', 'what is deleted is gone'), ['opening'])
  assert.deepEqual(rulesOf('test name', 'returns 404 for a deleted repository'), [])
})

test('counts the words of each sentence', () => {
  const words = (count: number) => `Words ${Array.from({ length: count - 1 }, () => 'word').join(', ')}.`
  assert.deepEqual(rulesOf('docs', `${words(maxWords)} ${words(maxWords)}`), [])
  assert.deepEqual(rulesOf('docs', words(maxWords + 1)), ['length'])
})

test('finds words that have a standard term, repeated words, British spelling and unknown abbreviations', () => {
  assert.deepEqual(rulesOf('docs', 'No door deletes it.'), ['term'])
  assert.deepEqual(rulesOf('docs', 'Pinfold deletes the the tag.'), ['repetition'])
  for (const word of ['organisation', 'unrecognised', 'behaviour', 'licence', 'cancelled', 'analyse']) {
    assert.deepEqual(rulesOf('docs', `It has a ${word}.`), ['spelling'], word)
  }
  for (const word of ['organization', 'license', 'canceled', 'specialist', 'promised', 'analysis', 'raise', 'disk']) {
    assert.deepEqual(rulesOf('docs', `It has a ${word}.`), [], word)
  }
  assert.deepEqual(rulesOf('docs', 'The API uses XYZ tokens.'), ['abbreviation'])
})

test('reads paragraphs, list items and cells of Markdown, without code and headings', () => {
  const page = [
    '# What',
    '',
    'One `what` and',
    '[two](of.md).',
    '',
    '- Three',
    '- Four',
    '  more',
    '',
    '| A | b |',
    '| --- | --- |',
  ]
  page.push('| c | `d` |', '', '```sh', 'what is code', '```', '', '<!-- what', 'hidden -->', 'End.')
  assert.deepEqual(
    textsOf('page.md', page.join('\n')).map(({ line, text }) => [line, text]),
    [
      [3, 'One CODE and two.'],
      [6, 'Three'],
      [7, 'Four more'],
      [10, 'A'],
      [10, 'b'],
      [12, 'c'],
      [12, 'CODE'],
      [20, 'End.'],
    ],
  )
})

test('reads comments and test names, with the line of their start', () => {
  const file = [
    '// Head of',
    '// the file.',
    "import { a } from './a.ts'",
    '',
    '/**',
    ' * A doc',
    ' * comment.',
    ' */',
    "const url = 'https://example.com' // Behind code.",
    '// biome-ignore lint: reason',
    ['test("returns `x` for $', '{y}", () => {})'].join('').replaceAll('"', "'"),
  ]
  assert.deepEqual(
    textsOf('a.test.ts', file.join('\n')).map(({ line, kind, text }) => [line, kind, text]),
    [
      [1, 'comment', 'Head of the file.'],
      [5, 'comment', 'A doc comment.'],
      [9, 'comment', 'Behind code.'],
      [11, 'test name', 'returns `x` for CODE'],
    ],
  )
})

test('reads comments after nested templates, regular expressions and URLs', () => {
  const open = ['$', '{'].join('')
  const file = [
    `const a = \`one ${open}b ? \`two ${open}c('}')}\` : { d: '//' }} // text\``,
    '/** First. */',
    "const e = /['`/]\\//.test(f) ? 4 / 2 : 'https://example.com'",
    '// Second.',
    'const g = h[1] / 3 // Third.',
    'return /[//]`/ // Fourth.',
  ]
  assert.deepEqual(
    textsOf('a.ts', file.join('\n')).map(({ line, text }) => [line, text]),
    [
      [2, 'First.'],
      [4, 'Second.'],
      [5, 'Third.'],
      [6, 'Fourth.'],
    ],
  )
})

test('reads product messages, but no SQL, names or strings of tests', () => {
  const open = ['$', '{'].join('')
  const file = [
    `throw failure(\`there is no tag ${open}tag} in this repository: \${list({ a: '}' })}\`)`,
    "const short = 'two words'",
    "const query = 'SELECT one FROM two WHERE the value is here'",
    'const help = `Begins with words of one sentence.',
    '',
    'Whoever reads it understands it.`',
  ].join('\n')
  const messages = (path: string) => textsOf(path, file).filter(({ kind }) => kind === 'message')
  assert.deepEqual(
    messages('src/a.ts').map(({ line, text }) => [line, text]),
    [
      [1, 'there is no tag CODE in this repository: CODE'],
      [4, 'Begins with words of one sentence.'],
      [4, 'Whoever reads it understands it.'],
    ],
  )
  assert.deepEqual([messages('src/a.test.ts'), messages('test/a.ts')], [[], []])
  const [problem] = problemsOf(messages('src/a.ts')[2]!)
  assert.equal(problem!.rule, 'opening')
})

test('a sample depends on its seed, and contains each kind of text', () => {
  const texts = Array.from({ length: 200 }, (_, i) => {
    return { file: `docs/${i % 9}.md`, line: i, kind: i % 2 ? 'docs' : 'comment', text: `text ${i}` } as const
  })
  const [one, same, other] = [sampleOf('1', texts), sampleOf('1', texts.toReversed()), sampleOf('2', texts)]
  assert.deepEqual(one, same)
  assert.notDeepEqual(one, other)
  assert.equal(one.filter((line) => /^\d+\. text/.test(line)).length, 60)
  assert.equal(one.filter((line) => line.startsWith('docs/')).length, 5)
})

test('counts syllables as a dictionary does', () => {
  const words = {
    1: ['cat', 'rules', 'pushed', 'signed', 'use', 'store', 'years', 'stage', 'real'],
    2: ['image', 'server', 'table', 'tables', 'create', 'people', 'single', 'before', 'changes', 'pushes', "doesn't"],
    3: [
      'images',
      'created',
      'deleted',
      'policy',
      'registry',
      'manual',
      'container',
      'example',
      'enabled',
      'area',
      'retention',
    ],
    4: ['identity', 'available', 'immutable', 'databases', 'temporary', 'OIDC'],
    5: ['organization', 'repository', 'authentication'],
    6: ['vulnerability', 'automatically'],
  }
  for (const [count, list] of Object.entries(words)) {
    for (const word of list) assert.equal(syllablesOf(word), Number(count), word)
  }
})

test('the Flesch-Kincaid grade of a page counts sentences, but no code, tables and headings', () => {
  const grade = (page: string) => Number(gradeOf(textsOf('page.md', page)).toFixed(2))
  const cats = 'The cat sat on the mat.'
  assert.equal(grade(cats), -1.45)
  assert.equal(grade('Each organization has its own repository.'), 14.28)
  const page = [
    '# Authentication',
    '',
    cats,
    '',
    '- Vulnerability',
    '',
    '| Organization. |',
    '| --- |',
    '',
    '```sh',
    'repository',
  ]
  assert.equal(grade([...page, '```', '', 'The cat `repository` sat on the mat.'].join('\n')), -1.45)
})
