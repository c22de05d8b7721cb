import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (file: string) => readFileSync(join(root, file), 'utf8')
const pages = globSync(['*.md', 'docs/**/*.md', 'examples/**/*.md', 'bench/*.md'], { cwd: root })
const tours = globSync('docs/tours/*.md', { cwd: root })

/** Anchor that GitHub makes from a heading: lower case, dashes for spaces, and only letters, digits, dashes and underscores. */
function anchorsOf(text: string): string[] {
  const headings = [...text.replaceAll(/^```[\s\S]*?^```$/gm, '').matchAll(/^#+ (.+)$/gm)].map((match) => match[1]!)
  return headings.map((heading) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  )
}

test('every link between documentation pages has an existing page and heading as its target', () => {
  const broken = pages.flatMap((page) => {
    const links = [...read(page).matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)/g)]
    return links.flatMap(([, path, anchor]) => {
      const target = path === '' ? page : join(dirname(page), path!)
      const found = existsSync(join(root, target)) && (!anchor || anchorsOf(read(target)).includes(anchor))
      return found ? [] : [`${page}: ${path}${anchor ? `#${anchor}` : ''}`]
    })
  })
  assert.deepEqual(broken, [])
})

test('the index of decisions lists each decision', () => {
  const index = read('docs/decisions/README.md')
  const missing = globSync('docs/decisions/0*.md', { cwd: root }).filter(
    (page) => !index.includes(`(${basename(page)})`),
  )
  assert.deepEqual(missing, [])
})

test('the README has a link to every tour, and a test runs every tour', () => {
  assert.ok(tours.length > 0)
  const [readme, runner] = [read('README.md'), read('test/cli/tour.test.ts')]
  for (const tour of tours) {
    assert.ok(readme.includes(`(${tour})`), `${tour} in the README`)
    assert.ok(runner.includes(`'${tour}'`), `${tour} in test/cli/tour.test.ts`)
  }
})

test('a test runs every guide', () => {
  const tests = globSync('test/cli/guides*.test.ts', { cwd: root }).map(read).join('')
  const missing = globSync('docs/guides/*.md', { cwd: root }).filter((guide) => {
    return !tests.includes(`'${guide}'`) && !tests.includes(`readGuide('${basename(guide, '.md')}')`)
  })
  assert.deepEqual(missing, [])
})

test('source files named in the documentation exist', () => {
  const missing = pages.flatMap((page) => {
    const named = [...read(page).matchAll(/`([a-z][\w.-]*(?:\/[\w.-]+)+\.ts)`/g)].map((match) => match[1]!)
    // The guide for a new resource uses a resource that does not exist.
    const real = named.filter((file) => !file.includes('charts'))
    const found = (file: string) => ['', 'src', 'src/domains'].some((room) => existsSync(join(root, room, file)))
    return real.filter((file) => !found(file)).map((file) => `${page}: ${file}`)
  })
  assert.deepEqual(missing, [])
})
