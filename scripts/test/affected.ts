// Selection of the test files that a change can affect, computed from imports.
import { execFileSync } from 'node:child_process'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { root } from '../run.ts'

/** Files whose changes can affect every test. */
const everything = /^(package(-lock)?\.json|tsconfig\.json|bin\/.*|scripts\/(test|run)\b.*)$/

/** Files that differ from the branch that this one started from. Includes uncommitted and untracked files. */
export function changedFiles(): string[] {
  const git = (...args: string[]) =>
    execFileSync('git', args, { cwd: root, encoding: 'utf8' }).split('\n').filter(Boolean)
  const base = startOf(git)
  const names = [...git('diff', '--name-only', base), ...git('ls-files', '--others', '--exclude-standard')]
  return [...new Set(names)]
}

function startOf(git: (...args: string[]) => string[]): string {
  try {
    return git('merge-base', 'HEAD', 'origin/main')[0] ?? 'HEAD'
  } catch {
    // A new repository may not have that branch.
    return 'HEAD'
  }
}

/** Test files that load or read a changed file. Tests with the fewest imports between them and the change come first. */
export function affectedTests(tests: readonly string[], changed: readonly string[]): string[] {
  if (changed.some((file) => everything.test(file))) return [...tests]
  const importers = new Map<string, string[]>()
  for (const file of globSync(['{src,gen,test,scripts,bench,examples,console}/**/*.{ts,tsx,mjs}'], { cwd: root })) {
    for (const used of usedBy(file)) importers.set(used, [...(importers.get(used) ?? []), file])
  }
  const reached = new Set(changed)
  for (const file of reached) for (const importer of importers.get(file) ?? []) reached.add(importer)
  const wanted = new Set(tests)
  return [...reached].filter((file) => wanted.has(file))
}

/** Type imports are removed before the code runs. */
const typesOnly = /^(?:import|export) type [^'"]*?from '[^']+'/gm

/** Files that a file names in quotes: its imports, and files that it reads or runs. */
function usedBy(file: string): Set<string> {
  const text = readFileSync(join(root, file), 'utf8').replace(typesOnly, '')
  const found = new Set<string>()
  for (const [, name] of text.matchAll(/['"`]([#./\w][^'"`\s$]*\.[a-z]+)['"`]/g)) {
    const path = name!.replace(/^#gen\//, 'gen/').replace(/^#/, 'src/')
    for (const candidate of [path, relative(root, resolve(root, dirname(file), path))]) {
      if (isInside(candidate) && candidate !== file && existsSync(join(root, candidate))) found.add(candidate)
    }
  }
  return found
}

const isInside = (path: string): boolean => !path.startsWith('..') && !path.startsWith('/')
