#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Sound and moving pictures in every container that ffmpeg can write, half a
# second to two seconds long. Needs ffmpeg and python3.
set -euo pipefail
cd "$(dirname "$0")/../../testdata/files"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

ff() { ffmpeg -nostdin -hide_banner -loglevel error -y "$@"; }
exact=(-bitexact -fflags +bitexact -flags +bitexact)
tone() { # seconds, options, file
	local seconds=$1
	shift
	ff -f lavfi -i "sine=frequency=440:sample_rate=16000:duration=$seconds" "${exact[@]}" "$@"
}
clip() { # seconds, options, file: pictures and sound
	local seconds=$1
	shift
	ff -f lavfi -i "testsrc=size=32x24:rate=10:duration=$seconds" -f lavfi -i "sine=frequency=440:sample_rate=16000:duration=$seconds" -shortest "${exact[@]}" "$@"
}

ff -f lavfi -i sine=frequency=440:sample_rate=8000:duration=0.5 "${exact[@]}" tone.wav
ff -f lavfi -i sine=frequency=440:sample_rate=16000:duration=1 -c:a libmp3lame -b:a 16k "${exact[@]}" tone.mp3
ff -f lavfi -i sine=frequency=440:sample_rate=8000:duration=0.5 "${exact[@]}" tone.flac
ff -f lavfi -i testsrc=size=32x24:rate=5:duration=1 -c:v libx264 -pix_fmt yuv420p "${exact[@]}" clip.mp4

tone 1 -c:a libmp3lame -b:a 16k -id3v2_version 0 -write_xing 0 bare.mp3
tone 1 -c:a libmp3lame -b:a 16k -id3v2_version 3 -metadata title=Tone id3v23.mp3
tone 2 -c:a libmp3lame -q:a 9 -id3v2_version 4 -metadata title=Tone vbr.mp3
ff -f lavfi -i sine=frequency=440:sample_rate=44100:duration=1 "${exact[@]}" -c:a libmp3lame -b:a 32k -ac 2 -id3v2_version 0 -write_xing 0 stereo.mp3
tone 0.5 -ar 8000 -c:a pcm_f32le float.wav
tone 0.5 -ar 8000 -c:a pcm_u8 -metadata title=Tone -write_bext 1 extended.wav
tone 0.5 -ar 8000 -rf64 always large.rf64.wav
tone 1 -c:a libvorbis -q:a 0 tone.ogg
tone 1 -c:a libopus -b:a 12k tone.opus
tone 1 -c:a flac -f ogg flac.oga
tone 1 -c:a libspeex speech.spx
tone 1 -c:a aac -b:a 16k tone.aac
tone 1 -c:a aac -b:a 16k tone.m4a
tone 1 -c:a alac -f ipod lossless.m4a
tone 0.5 -ar 8000 tone.aiff
tone 0.5 -ar 8000 -f au tone.au
tone 0.5 -ar 8000 -c:a pcm_s16le -f caf tone.caf
tone 1 -c:a wmav2 -b:a 32k tone.wma
tone 1 -ar 32000 -c:a ac3 -b:a 32k tone.ac3
tone 1 -c:a libopus -b:a 12k -f webm sound.webm
tone 1 -c:a libvorbis -q:a 0 -f matroska sound.mka
tone 0.5 -ar 8000 -f s16le samples.pcm

clip 1 -c:v libx264 -pix_fmt yuv420p -crf 40 -c:a aac -b:a 16k clip.mov
clip 1 -c:v libx264 -pix_fmt yuv420p -crf 40 -c:a aac -b:a 16k -f ipod clip.m4v
clip 1 -c:v libx264 -pix_fmt yuv420p -crf 40 -c:a aac -b:a 16k -movflags frag_keyframe+empty_moov fragmented.mp4
clip 1 -c:v libx264 -pix_fmt yuv420p -crf 40 -c:a aac -b:a 16k -movflags faststart streaming.mp4
clip 1 -c:v libx265 -x265-params log-level=none -tag:v hvc1 -pix_fmt yuv420p -crf 45 -an hevc.mp4
clip 1 -c:v h263 -s 128x96 -c:a aac -b:a 16k -f 3gp clip.3gp
clip 1 -c:v libvpx -b:v 20k -c:a libvorbis -q:a 0 clip.webm
clip 1 -c:v libx264 -pix_fmt yuv420p -crf 40 -c:a libvorbis -q:a 0 clip.mkv
clip 1 -c:v mpeg4 -q:v 20 -c:a libmp3lame -b:a 16k clip.avi
clip 1 -r 25 -c:v mpeg1video -q:v 20 -c:a mp2 -b:a 32k clip.mpg
clip 1 -r 25 -c:v mpeg1video -q:v 20 -an -f mpeg1video stream.m1v
clip 1 -r 25 -c:v mpeg2video -q:v 20 -c:a mp2 -b:a 32k -f mpegts clip.mts
clip 1 -c:v flv -q:v 20 -ar 44100 -c:a libmp3lame -b:a 32k clip.flv
clip 1 -c:v libtheora -q:v 1 -c:a libvorbis -q:a 0 clip.ogv
clip 1 -c:v wmv2 -q:v 20 -c:a wmav2 -b:a 32k clip.wmv
clip 1 -c:v rv10 -q:v 20 -s 176x144 -an clip.rm
# A recorder that cannot go back leaves the length open.
tone 0.5 -ar 8000 -f wav pipe: | cat >piped.wav
clip 1 -c:v libvpx -b:v 20k -c:a libvorbis -q:a 0 -f webm pipe: | cat >piped.webm

python3 - <<'PYTHON'
import hashlib, struct

# Half a second as telephones record it: 25 frames of 20 ms. The speech in them is noise.
frames = [hashlib.sha512(bytes([n])).digest() for n in range(25)]
open("voice.amr", "wb").write(b"#!AMR\n" + b"".join(b"\x3c" + f[:31] for f in frames))
open("wide.awb", "wb").write(b"#!AMR-WB\n" + b"".join(b"\x14" + f[:32] for f in frames))
# Four quarter notes at 120 a minute.
track = b"\0\xff\x51\x03\x07\xa1\x20" + b"".join(bytes([0, 0x90, n, 64, 96, 0x80, n, 0]) for n in (60, 62, 64, 65)) + b"\0\xff\x2f\0"
open("tune.mid", "wb").write(b"MThd" + struct.pack(">IHHH", 6, 0, 1, 96) + b"MTrk" + struct.pack(">I", len(track)) + track)
PYTHON
