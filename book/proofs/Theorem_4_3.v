(* Theorem 4.3 and Corollary 4.4: HSIC bounds every smoothed average of the deviations.

   Formalized: the identity for HSIC, the smoothed form, the form for a fixed
   head and the bilinear form of Theorem 4.3; the one-point and the two-point
   bound of Corollary 4.4. Z and S take finitely many values.
   Weaker than the paper: finite spaces, where Delta is square integrable
   without any assumption. In general that needs a separable RKHS.
   Stronger: k_S(s0, s0) > 0 is not needed.
   Hypotheses: p is a joint law, k and l are kernels (k_Z and k_S); [ball l b g]
   says that g belongs to the RKHS of k_S and has squared norm at most b. *)
From mathcomp Require Import all_ssreflect all_algebra ring.
From Proofs Require Import Finite.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(* begin Theorem 4.3, identity *)
(* The weights of E[Delta(S) (x) k_S(S, .)] in the tensor product. *)
Definition mean_tensor (R : realFieldType) (Z S : finType) (p : Z -> S -> R) (a : Z * S) : R :=
  marginal_s p a.2 * deviation p a.2 a.1.

Theorem hsic_norm (R : realFieldType) (Z S : finType)
    (p : Z -> S -> R) (k : Z -> Z -> R) (l : S -> S -> R) :
  joint_law p -> hsic k l p = quad (product_kernel k l) (mean_tensor p).
(* end Theorem 4.3, identity *)
Proof.
by move=> p_law; apply: eq_quad => a; rewrite /mean_tensor -joint_minus_product.
Qed.

(* begin Theorem 4.3, smoothed form *)
Theorem smoothed_control (R : realFieldType) (Z S : finType)
    (p : Z -> S -> R) (k : Z -> Z -> R) (l : S -> S -> R) (b : R) (g : S -> R) :
  joint_law p -> kernel k -> kernel l -> ball l b g ->
  quad k (fun z => \sum_s marginal_s p s * g s * deviation p s z) <= b * hsic k l p.
(* end Theorem 4.3, smoothed form *)
Proof.
move=> p_law /kernel_squares[r [d [v [d0 ek]]]] _ gb.
rewrite (hsic_squares p_law _ ek) {1}/quad (eq_kernel_form _ _ ek) form_squares mulr_sumr.
apply: ler_sum => j _; rewrite [X in _ <= X]mulrCA; apply: ler_wpmul2l => //.
have -> : \sum_z (\sum_s marginal_s p s * g s * deviation p s z) * v j z
          = \sum_s marginal_s p s * head_gap p (v j) s * g s.
  under eq_bigr do rewrite mulr_suml.
  rewrite exchange_big; apply: eq_bigr => s _ /=.
  rewrite /head_gap [X in _ = X * _]mulr_sumr [RHS]mulr_suml.
  by apply: eq_bigr => z _; ring.
by rewrite -expr2.
Qed.

(* begin Theorem 4.3, fixed head *)
Theorem head_control (R : realFieldType) (Z S : finType)
    (p : Z -> S -> R) (k : Z -> Z -> R) (l : S -> S -> R) (b : R) (f : Z -> R) :
  joint_law p -> kernel k -> kernel l -> ball k b f ->
  quad l (fun s => marginal_s p s * head_gap p f s) <= b * hsic k l p.
(* end Theorem 4.3, fixed head *)
Proof.
move=> p_law [sk _] /kernel_squares[r [d [v [d0 el]]]] fb.
rewrite (hsic_decomposition p_law) {1}/quad (eq_kernel_form _ _ el) form_squares.
pose w j z := \sum_s (marginal_s p s * v j s) * deviation p s z.
have -> : \sum_s \sum_t marginal_s p s * marginal_s p t *
            (form k (deviation p s) (deviation p t) * l s t) = \sum_j d j * quad k (w j).
  transitivity (\sum_s \sum_t \sum_j d j *
    ((marginal_s p s * v j s) * ((marginal_s p t * v j t) * form k (deviation p s) (deviation p t)))).
    apply: eq_bigr => s _; apply: eq_bigr => t _; rewrite el /squares.
    rewrite mulrA [LHS]mulr_sumr; apply: eq_bigr => j _; ring.
  under eq_bigr do rewrite exchange_big /=.
  rewrite exchange_big; apply: eq_bigr => j _ /=.
  rewrite /quad form_suml mulr_sumr; apply: eq_bigr => s _.
  by rewrite form_sumr !mulr_sumr.
rewrite mulr_sumr; apply: ler_sum => j _; rewrite [X in _ <= X]mulrCA; apply: ler_wpmul2l => //.
have -> : \sum_s marginal_s p s * head_gap p f s * v j s = \sum_z w j z * f z.
  rewrite /w; under [RHS]eq_bigr do rewrite mulr_suml.
  rewrite [RHS]exchange_big; apply: eq_bigr => s _ /=.
  rewrite /head_gap [X in X * _]mulr_sumr [LHS]mulr_suml.
  by apply: eq_bigr => z _; ring.
by rewrite -expr2.
Qed.

(* begin Theorem 4.3, bilinear form *)
Theorem bilinear_control (R : realFieldType) (Z S : finType)
    (p : Z -> S -> R) (k : Z -> Z -> R) (l : S -> S -> R)
    (bf bg : R) (f : Z -> R) (g : S -> R) :
  joint_law p -> kernel k -> kernel l -> 0 <= bf -> ball k bf f -> ball l bg g ->
  (\sum_s marginal_s p s * g s * head_gap p f s) ^+ 2 <= bf * bg * hsic k l p.
(* end Theorem 4.3, bilinear form *)
Proof.
move=> p_law kk kl bf0 fb gb.
have -> : \sum_s marginal_s p s * g s * head_gap p f s
          = \sum_z (\sum_s marginal_s p s * g s * deviation p s z) * f z.
  under [RHS]eq_bigr do rewrite mulr_suml.
  rewrite [RHS]exchange_big; apply: eq_bigr => s _ /=.
  by rewrite /head_gap mulr_sumr; apply: eq_bigr => z _; ring.
apply: le_trans (fb _) _; rewrite -mulrA; apply: ler_wpmul2l => //.
exact: smoothed_control.
Qed.

(* begin Corollary 4.4, one point *)
Theorem one_point (R : realFieldType) (Z S : finType)
    (p : Z -> S -> R) (k : Z -> Z -> R) (l : S -> S -> R) (s0 : S) :
  joint_law p -> kernel k -> kernel l ->
  quad k (fun z => \sum_s marginal_s p s * l s s0 * deviation p s z)
    <= l s0 s0 * hsic k l p.
(* end Corollary 4.4, one point *)
Proof.
by move=> p_law kk kl; apply: smoothed_control => //; exact: ball_point.
Qed.

(* begin Corollary 4.4, two points *)
Theorem two_points (R : realFieldType) (Z S : finType)
    (p : Z -> S -> R) (k : Z -> Z -> R) (l : S -> S -> R) (s0 s1 : S) :
  joint_law p -> kernel k -> kernel l ->
  quad k (fun z => \sum_s marginal_s p s * (l s s0 - l s s1) * deviation p s z)
    <= (l s0 s0 - 2%:R * l s0 s1 + l s1 s1) * hsic k l p.
(* end Corollary 4.4, two points *)
Proof.
by move=> p_law kk kl; apply: smoothed_control => //; exact: ball_points.
Qed.

(* For a fair coin Z = S the two-point bound is an equality, 1/2 = 2 * 1/4. *)
Example two_points_sharp (R : realFieldType) :
  let p := @coin R in
  quad equal (fun z => \sum_s marginal_s p s * (equal s true - equal s false) * deviation p s z)
    = (equal true true - 2%:R * equal true false + equal false false) * hsic equal equal p.
Proof.
rewrite /= coin_hsic quad_equal !big_bool !coin_marginal !coin_deviation /equal /=.
by field.
Qed.
