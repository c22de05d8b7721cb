// Runs in a thread of its own, so that a long document holds up no request. Started by `read-contents.ts` only.
import { parentPort, workerData } from 'node:worker_threads'
import { readFiles } from './files.ts'
import { Unreadable } from './packages.ts'
import type { Answer, Question } from './read-contents.ts'
import { readSbom } from './sbom.ts'

const question = workerData as Question

function answer(): Answer {
  try {
    return { contents: 'sbom' in question ? readSbom(question.sbom) : readFiles(question.files) }
  } catch (error) {
    if (error instanceof Unreadable) return { reason: error.reason, message: error.message }
    throw error
  }
}

parentPort?.postMessage(answer())
