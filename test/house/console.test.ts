import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { overBudget } from '../../scripts/console.ts'
import { problemsOf, sentencesOf } from '../../scripts/prose/rules.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (file: string): string => readFileSync(join(root, file), 'utf8')
const files = globSync('console/src/**/*.{ts,tsx}', { cwd: root }).sort()
const screens = files.filter((file) => file.endsWith('.tsx'))

test('console files stay within their size limits', () => {
  const manifest = JSON.parse(read('gen/console/manifest.json'))
  const sizeOf = (name: string) => gzipSync(readFileSync(join(root, 'gen/console', name)), { level: 9 }).length
  assert.deepEqual(overBudget(manifest, sizeOf), [])
  assert.equal(overBudget(manifest, () => 30_000).length, 2 + Object.keys(manifest.areas).length - 1)
})

test('the console inserts no HTML, runs no text as a script, and uses no inline styles', () => {
  const wrong = /innerHTML|outerHTML|insertAdjacentHTML|dangerouslySet|document\.write|\beval\(|new Function|\sstyle=/
  assert.deepEqual(
    files.filter((file) => wrong.test(read(file))),
    [],
  )
  assert.ok(wrong.test('element.innerHTML = text'))
})

test('the console imports only types of the API, and no server code', () => {
  const strays = files.flatMap((file) =>
    [...read(file).matchAll(/^import\s+(type\s)?[^'"]*?from '([^']+)'/gm)]
      .filter(([, isType, from]) => {
        if (from!.startsWith('#gen/')) return !isType
        return !from!.startsWith('.') && !/^(?:preact(?:\/hooks)?|@preact\/signals|lucide)$/.test(from!)
      })
      .map(([, , from]) => `${file}: ${from}`),
  )
  assert.deepEqual(strays, [])
  const asking = files.filter((file) => /\bfetch\(|XMLHttpRequest|WebSocket|EventSource|sendBeacon/.test(read(file)))
  assert.deepEqual(asking, ['console/src/data/api.ts'])
  const reaching = files.filter((file) => /\/data\//.test(file) && /from '\.\.\//.test(read(file)))
  assert.deepEqual(reaching, [])
})

test('every text of the console is in the folder words, under a unique name', () => {
  // Texts between tags, and attributes that are shown or read aloud.
  const between =
    /<(?!(?:void|string|number|boolean|unknown)>)[a-z]\w*(?:\s[^<>]*)?>\s*([^<>{}()]*[A-Za-z]{3,}[^<>{}()]*)</g
  const inside = /\b(?:title|label|placeholder|aria-label|submit|caption)="([^"]*[a-z][^"]*)"/g
  const found = screens.flatMap((file) => {
    const text = read(file).replaceAll(/\/\/.*|\/\*[\s\S]*?\*\//g, '')
    return [...text.matchAll(between), ...text.matchAll(inside)].map((match) => `${file}: ${match[1]}`)
  })
  assert.deepEqual(found, [])
  assert.ok(between.test('<p>Some text</p>'))
  const modules = files.filter((file) => file.startsWith('console/src/words/'))
  const names = modules.flatMap((file) => [...read(file).matchAll(/^ {2}(\w+):/gm)].map((match) => match[1]!))
  assert.ok(names.length > 500)
  assert.deepEqual(
    names.filter((name, i) => names.indexOf(name) !== i),
    [],
  )
})

test('console texts follow the prose rules', () => {
  const modules = files.filter((file) => file.startsWith('console/src/words/'))
  const literals = modules.flatMap((file) =>
    [...read(file).matchAll(/'((?:[^'\\\n]|\\.)*)'|`((?:[^`\\]|\\.)*)`/g)].map(([, text, template]) => ({
      file,
      text: (text ?? template!).replaceAll(/\$\{[^}]*\}/g, '1'),
    })),
  )
  const found = literals.flatMap(({ file, text }) =>
    problemsOf({ kind: 'docs', text }).map(({ message }) => `${file}: ${message}: ${text}`),
  )
  assert.deepEqual(found, [])
  const sentences = literals.flatMap(({ text }) => sentencesOf(text))
  assert.ok(sentences.length > 500)
})
