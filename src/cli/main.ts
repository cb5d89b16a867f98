import { serve } from './serve.ts'

process.exitCode = await serve(process.env, console.log)
