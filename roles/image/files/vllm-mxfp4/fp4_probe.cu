// One block-scaled multiplication of MXFP4 numbers, as a GB10's tensor cores do it.
//
// Nothing runs it: compiled into an image it shows, to whoever looks at the machine code, that the image's compiler was
// asked for an architecture with native FP4. For plain 12.1 it compiles as well, as the big kernel libraries do, and
// then has no such instruction in it.

#if __CUDA_ARCH__ >= 1200 && (defined(__CUDA_ARCH_SPECIFIC__) || defined(__CUDA_ARCH_FAMILY_SPECIFIC__))
#define NATIVE_FP4 1
#endif

extern "C" __global__ void tinderbox_fp4_probe(float *out, const unsigned *in)
{
    float d0 = 0, d1 = 0, d2 = 0, d3 = 0;
#ifdef NATIVE_FP4
    const unsigned short zero = 0;
    asm volatile("mma.sync.aligned.kind::mxf4.block_scale.scale_vec::2X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue8m0 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3}, {%10}, {%12,%12}, {%11}, {%12,%12};"
                 : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
                 : "r"(in[0]), "r"(in[1]), "r"(in[2]), "r"(in[3]), "r"(in[4]), "r"(in[5]), "r"(in[6]), "r"(in[7]),
                   "h"(zero));
#endif
    out[threadIdx.x] = d0 + d1 + d2 + d3;
}
