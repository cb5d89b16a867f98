import { useLingui } from '@lingui/react/macro'
import { Skeleton } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { client } from '../../../../api/client.ts'
import { Empty } from '../../../../components/empty.tsx'
import { Problem } from '../../../../components/problem.tsx'
import { imageTypeOf } from './image-type.ts'
import css from './preview.module.css'

const MAX_BYTES = 32 * 1024 * 1024

interface Props {
  serverId: string
  path: string
  name: string
}

export function ImagePreview({ serverId, path, name }: Props) {
  const { t } = useLingui()
  const { data, error, refetch } = useQuery({
    queryKey: ['image', serverId, path],
    queryFn: ({ signal }) => readImage(serverId, path, signal),
    gcTime: 0,
    refetchOnWindowFocus: false,
  })
  const url = useBlobUrl(data ?? null)
  if (error) return <Problem error={error} onRetry={() => void refetch()} />
  if (data === null) {
    return (
      <div className="card">
        <Empty icon="image" title={t`This is no picture that can be shown here, or it is too large.`} />
      </div>
    )
  }
  if (url === null) return <Skeleton height={320} radius="md" />
  return (
    <div className={`card ${css.picture}`}>
      <img src={url} alt={name} />
    </div>
  )
}

async function readImage(serverId: string, path: string, signal: AbortSignal): Promise<Blob | null> {
  const { bytes, sizeBytes } = await client.files.read(serverId, path, { signal })
  if (sizeBytes === null || sizeBytes > MAX_BYTES) {
    await bytes.cancel()
    return null
  }
  const content = new Uint8Array(await new Response(bytes).arrayBuffer())
  const type = imageTypeOf(content)
  return type === null ? null : new Blob([content], { type })
}

function useBlobUrl(blob: Blob | null): string | null {
  const [url, setUrl] = useState<string | null>(null)
  useEffect(() => {
    if (!blob) return
    const made = URL.createObjectURL(blob)
    setUrl(made)
    return () => URL.revokeObjectURL(made)
  }, [blob])
  return url
}
