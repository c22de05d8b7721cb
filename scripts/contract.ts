// `npm run contract`: writes the descriptor set, with imports and options, for tools that hold it against the contract.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { must, root } from './run.ts'

mkdirSync(join(root, 'build'), { recursive: true })
must('buf', ['build', '-o', 'build/contract.binpb'])
