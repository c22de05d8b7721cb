// `bin/pinfold-node test/upgrades/record.ts NAME` records a release on the engine at hand, see README.md.
import assert from 'node:assert/strict'
import { operatorUid } from '#issuer/access-token.ts'
import { createStorage } from '../support/process.ts'
import { registryClient } from '../support/registry.ts'
import { type Answers, askAll, type Questions } from './ask.ts'
import { differencesOf } from './compare.ts'
import { openCopy } from './open.ts'
import { namesOf, questionsOf } from './questions.ts'
import { copyOf, packStorage, type Release, readRelease, writeRelease } from './release.ts'
import { fill, settings } from './scene.ts'

const [name] = process.argv.slice(2)
if (name === undefined || !/^[a-z0-9][a-z0-9.-]*$/.test(name)) throw new Error('name the release, such as 0.2.0')

async function record(): Promise<Release> {
  await using storage = await createStorage()
  const people = await fill(storage)
  await packStorage(name!, storage)
  const masterKey = storage.env.PINFOLD_MASTER_KEY ?? ''
  const release = { ...people, now: new Date().toISOString(), settings, masterKey, names: {}, answers: {} }
  writeRelease(name!, release)
  return release
}

/** Questions and their names. UpstreamCheck around leaves traces, so this needs a copy of its own. */
async function questionsTo(release: Release): Promise<{ questions: Questions; names: Record<string, string> }> {
  await using copy = await copyOf(name!)
  await using server = await openCopy(release, copy)
  const { asked, pinfold } = server
  const registry = registryClient(asked.origin, await asked.token(operatorUid, true))
  const questions = await questionsOf(pinfold.operator, registry, release)
  const text = JSON.stringify(await askAll(asked, questions))
  return { questions, names: await namesOf(pinfold.operator, release, text) }
}

async function answersTo(release: Release, questions: Questions, known?: Answers): Promise<Answers> {
  await using copy = await copyOf(name!)
  await using server = await openCopy(release, copy)
  return await askAll(server.asked, questions, known)
}

const release = await record()
const { questions, names } = await questionsTo(release)
writeRelease(name, { ...release, names, answers: await answersTo(release, questions) })
// Values that differ from run to run cannot be expected of a later release.
const { answers } = readRelease(name)
assert.deepEqual(differencesOf(answers, await answersTo(release, questions, answers)), {})
console.log(`recorded ${name}: ${Object.values(questions).flat().length} questions`)
