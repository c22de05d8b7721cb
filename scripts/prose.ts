// `bin/pinfold-node scripts/prose.ts [--all | --grades | --sample SEED | FILE…]`: checks the prose of the files that
// scripts/prose/checked.json names, or of the given ones. `--all` counts the problems of every folder instead. `--grades` prints
// the Flesch-Kincaid grade of each page. `--sample` prints texts that the seed draws, for a reader who does not know the code.
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gradeOf, maxGrade } from './prose/readability.ts'
import { problemsOf, sentencesOf } from './prose/rules.ts'
import { sampleOf } from './prose/sample.ts'
import { textsOf } from './prose/texts.ts'
import { root } from './run.ts'

const kinds = /\.(?:md|ts|tsx|mjs|proto)$/
const given = process.argv.slice(2)
const all = spawnSync('git', ['-c', 'safe.directory=*', 'ls-files'], { cwd: root, encoding: 'utf8' })
  .stdout.split('\n')
  .filter((file) => kinds.test(file) && !file.startsWith('gen/') && !file.startsWith('docs/api/'))
const checked = JSON.parse(readFileSync(join(root, 'scripts/prose/checked.json'), 'utf8')) as string[]
/** Files and folders to check. A "!" before a name excludes it. */
const isChecked = (file: string) =>
  checked.some((one) => file === one || (one.endsWith('/') && file.startsWith(one))) && !checked.includes(`!${file}`)

if (given[0] === '--sample') {
  const texts = all.flatMap((file) => {
    return textsOf(file, readFileSync(join(root, file), 'utf8')).map((text) => ({ ...text, file }))
  })
  console.log(sampleOf(given[1] ?? '', texts).join('\n'))
  process.exit(0)
}

/** Pages that new users read first. */
const isGraded = (file: string) => file === 'README.md' || /^docs\/guides\/[^/]+\.md$/.test(file)
const gradeOfPage = (file: string) => gradeOf(textsOf(file, readFileSync(join(root, file), 'utf8')))

if (given[0] === '--grades') {
  for (const file of all.filter((file) => file.endsWith('.md') && !file.startsWith('docs/decisions/'))) {
    console.log(`${gradeOfPage(file).toFixed(1)} ${file}`)
  }
  process.exit(0)
}

const isCount = given[0] === '--all'
const files = isCount ? all : given.length > 0 ? given : all.filter(isChecked)
const counts = new Map<string, { sentences: number; problems: Record<string, number> }>()
let failed = 0
for (const file of files) {
  const folder = file
    .split('/')
    .slice(0, file.startsWith('src/domains/') ? 3 : 2)
    .join('/')
  const count = countOf(folder)
  const grade = isGraded(file) ? gradeOfPage(file) : 0
  if (grade > maxGrade) {
    failed++
    count.problems.grade = (count.problems.grade ?? 0) + 1
    const message = `the Flesch-Kincaid grade is ${grade.toFixed(2)}, and at most ${maxGrade} is allowed`
    if (!isCount) console.error(`${file}: grade: ${message}; use shorter sentences and words`)
  }
  for (const text of textsOf(file, readFileSync(join(root, file), 'utf8'))) {
    count.sentences += sentencesOf(text.text).length
    for (const { rule, message } of problemsOf(text)) {
      failed++
      count.problems[rule] = (count.problems[rule] ?? 0) + 1
      if (!isCount) console.error(`${file}:${text.line}: ${rule}: ${message}\n    ${text.text.slice(0, 160)}`)
    }
  }
}

function countOf(folder: string) {
  const count = counts.get(folder) ?? { sentences: 0, problems: {} as Record<string, number> }
  counts.set(folder, count)
  return count
}

if (isCount) {
  for (const [folder, { sentences, problems }] of [...counts].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const told = Object.entries(problems).map(([rule, number]) => `${rule} ${number}`)
    console.log(`${folder}: ${sentences} sentences, ${told.join(', ') || 'no problem'}`)
  }
}
console.log(`${files.length} files, ${failed} problems`)
process.exit(isCount || failed === 0 ? 0 : 1)
